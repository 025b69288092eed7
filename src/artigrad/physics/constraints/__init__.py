"""Constraint rows of a step (contacts, limits, dry friction, equalities) and the contact laws that compute their forces."""
