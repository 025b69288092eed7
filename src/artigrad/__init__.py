from . import robots
from .simulator import Simulator
from .state import State
from .io.builder import ModelBuilder
from .rollout import EveryStep, EveryKth, Binomial
