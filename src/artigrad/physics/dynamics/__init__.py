"""Stage 2: from positions, velocities and controls to joint accelerations, and the adjoint."""
