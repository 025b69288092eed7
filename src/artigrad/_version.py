"""Version of the package, read by the build and at run time."""

__version__ = "0.2.0"
