"""Constants of a step computed from Params, once per call; each part above its adjoint."""
