"""Actions are tried on a stage."""

from job_stage import house, sqlite
from stages import clock, database, either, set_up, stage

__all__ = [
    "clock",
    "database",
    "either",
    "house",
    "set_up",
    "sqlite",
    "stage",
]
