"""Actions are tried on a stage."""

from stages import clock, database, either, postgres, set_up, stage

__all__ = ["clock", "database", "either", "postgres", "set_up", "stage"]
