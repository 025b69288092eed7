"""Data without physics: the structure of a robot, its parameters, its states, and the options of a step."""
