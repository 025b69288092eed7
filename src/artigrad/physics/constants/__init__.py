"""What a step reads of Params, ready to use; made once per call, not once per step, each part above its adjoint."""
