"""Errors a user may see. Each message names the culprit and says what to do."""


class ModelError(ValueError):
    """A robot description that no physics can be made of."""


class InputError(ValueError):
    """An array or argument of a call that does not fit the model: shape, type, value."""


class ContactError(RuntimeError):
    """More contacts at once than a simulator has room for."""


class DeviceError(RuntimeError):
    """Something about the GPU or its driver: none there, out of memory, too old."""
