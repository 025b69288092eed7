"""Nouns without physics: what a robot is made of, its parameters, its states, and how a step is made."""
