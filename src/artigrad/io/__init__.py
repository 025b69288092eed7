"""Models made by hand, and several in one scene."""
