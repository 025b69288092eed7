"""Simulator, its engine and input validation, results, checkpoints and sensors."""
