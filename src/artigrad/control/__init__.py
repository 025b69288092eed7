"""Control: inverse kinematics, LQR, iLQR and model-predictive control on a simulator's exact derivatives."""

from .costs import Cost, Expansion, LeastSquares, Quadratic
from .ik import IK, Goal, ik
from .ilqr import Plan, ilqr
from .lqr import LQR, lqr
from .mpc import MPC

__all__ = ["IK", "LQR", "MPC", "Cost", "Expansion", "Goal", "Plan", "Quadratic", "LeastSquares", "ik", "ilqr", "lqr"]
