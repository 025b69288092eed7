"""Stage 4 of a step: constraint rows for contacts, limits, dry friction and equalities, and the laws that determine their
forces."""
