"""artigrad with the contact law of the paper: hybrid solver, implicit gradient."""

import time

from common import DT, Q_BAR, V_BAR, Q, U, V, report

import artigrad as ag

start = time.process_time()
sim = ag.Simulator(ag.robots.laikago(), DT, threads=1, law="hard")


def forward():
    return sim.rollout(ag.State(Q, V), U).final.q[2]


def gradient():
    return sim.vjp(sim.rollout(ag.State(Q, V), U), q_bar=Q_BAR, v_bar=V_BAR, with_params=False).u


gradient()
report(ag.__version__, forward, gradient, "exact adjoint of the rollout", time.process_time() - start)
