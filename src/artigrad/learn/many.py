"""Deprecated name of `artigrad.learn.distributed`."""

from ..deprecation import module_getattr

__getattr__ = module_getattr(
    __name__,
    {
        "Share": "artigrad.learn.distributed:GlooProcessGroup",
        "Workers": "artigrad.learn.distributed:Workers",
        "free_port": "artigrad.learn.distributed:free_port",
    },
)
