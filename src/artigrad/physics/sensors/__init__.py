"""Staged sensors: readings of a state under controls. Each kind is one record of one table (`sensor_table`)."""
