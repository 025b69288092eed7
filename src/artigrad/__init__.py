"""artigrad: differentiable simulation of articulated bodies.

model = ag.robots.quadruped()
sim = ag.Simulator(model, dt=1e-3)
traj = sim.rollout(sim.reset(), u)
grad = sim.vjp(traj, q_bar=..., v_bar=...)
"""

from . import robots
from ._version import __version__
from .errors import ContactError, DeviceError, InputError, ModelError
from .fit import Fit, Parameter, Recording, fit
from .gradcheck import gradcheck
from .io.builder import ModelBuilder
from .io.load import load
from .io.save import save
from .io.scene import scene
from .model import Model
from .options import Options
from .params import Params
from .report import Finding, Report
from .results import Contacts, Gradient, Health, Outputs, StateGradient, Trajectory
from .rollout import Binomial, EveryKth, EveryStep
from .simulator import Simulator
from .staging import Cuda, StagingError
from .state import State
from .tangent import move, to_ambient, to_tangent
from .view import view
from .visual import Visual

__all__ = [
    "Binomial",
    "Cuda",
    "DeviceError",
    "EveryKth",
    "EveryStep",
    "Finding",
    "Fit",
    "Gradient",
    "Health",
    "ContactError",
    "Contacts",
    "InputError",
    "Model",
    "ModelBuilder",
    "ModelError",
    "Options",
    "Outputs",
    "Parameter",
    "Params",
    "Recording",
    "Report",
    "Simulator",
    "StagingError",
    "State",
    "StateGradient",
    "Trajectory",
    "Visual",
    "__version__",
    "fit",
    "gradcheck",
    "load",
    "move",
    "robots",
    "save",
    "scene",
    "to_ambient",
    "to_tangent",
    "view",
]
