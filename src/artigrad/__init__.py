"""Differentiable simulation of articulated bodies.

model = ag.robots.quadruped()
sim = ag.Simulator(model, dt=1e-3)
traj = sim.rollout(sim.reset(), u)
grad = sim.vjp(traj, q_bar=..., v_bar=...)
"""

from . import robots
from ._version import __version__
from .build.builder import ModelBuilder
from .build.edit import edit
from .build.scene import scene
from .compiler import Cuda, StagingError
from .deprecation import module_getattr
from .errors import ContactError, DeviceError, InputError, ModelError
from .fit import Fit, Parameter, Recording, fit
from .formats.load import load
from .formats.save import save, spec
from .model.findings import Finding, Report
from .model.model import Model
from .model.options import HardOptions, Options, SoftOptions
from .model.params import Params
from .model.state import State
from .model.tangent import difference, integrate, to_ambient, to_tangent
from .model.visuals import Visual
from .simulate.checkpoints import Binomial, EveryKth, EveryStep
from .simulate.cotangents import GradientOptions
from .simulate.gradcheck import gradcheck
from .simulate.policy_loop import Network
from .simulate.results import Contacts, Gradient, Health, Outputs, StateGradient, Trajectory
from .simulate.simulator import Simulator
from .view import interact, view

__getattr__ = module_getattr(__name__, {"move": "integrate", "play": "interact"})

__all__ = [
    "Binomial",
    "Cuda",
    "DeviceError",
    "EveryKth",
    "EveryStep",
    "Finding",
    "Fit",
    "Gradient",
    "GradientOptions",
    "HardOptions",
    "Health",
    "ContactError",
    "Contacts",
    "InputError",
    "Model",
    "ModelBuilder",
    "ModelError",
    "Network",
    "Options",
    "Outputs",
    "Parameter",
    "Params",
    "Recording",
    "Report",
    "Simulator",
    "SoftOptions",
    "StagingError",
    "State",
    "StateGradient",
    "Trajectory",
    "Visual",
    "__version__",
    "difference",
    "edit",
    "fit",
    "gradcheck",
    "integrate",
    "interact",
    "load",
    "robots",
    "save",
    "scene",
    "spec",
    "to_ambient",
    "to_tangent",
    "view",
]
