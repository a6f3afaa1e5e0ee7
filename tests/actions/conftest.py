"""Actions are tried on a stage."""

from support.stage.job_stage import house
from support.stage.stages import clock, database, either, set_up, stage

__all__ = [
    "clock",
    "database",
    "either",
    "house",
    "set_up",
    "stage",
]
