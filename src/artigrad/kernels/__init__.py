"""What is compiled: whole rollouts and their adjoints, functions of one state, Jacobians, constants."""
