"""The simulator and what is behind it: engine, checks of what comes in, results, checkpoints, sensors."""
