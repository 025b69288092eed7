"""Stage 3 of a step: distances between shapes and their adjoint. One file per type of shape pair."""
