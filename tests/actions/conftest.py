"""Actions are tried on a stage."""

from stages import clock, database, set_up, stage

__all__ = ["clock", "database", "set_up", "stage"]
