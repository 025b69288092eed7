"""Stage 3: gaps between shapes, and the way back. One file per richer shape of the pair."""
