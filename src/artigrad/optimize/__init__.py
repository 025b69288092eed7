"""Optimizers with one interface: Adam, SGD, L-BFGS and CMA-ES, from several initial guesses at once, within bounds."""

from .minimize import METHODS, History, minimize
from .problem import Iterate, Method, Problem

__all__ = ["METHODS", "History", "Iterate", "Method", "Problem", "minimize"]
