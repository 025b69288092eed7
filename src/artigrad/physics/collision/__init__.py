"""Stage 3: gaps between shapes, and the adjoint. One file per richer shape of the pair."""
