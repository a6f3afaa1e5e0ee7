"""Actions are tried on a stage."""

from job_stage import emptied_postgres, house, one_postgres, sqlite
from stages import clock, database, either, postgres, set_up, stage

__all__ = [
    "clock",
    "database",
    "either",
    "emptied_postgres",
    "house",
    "one_postgres",
    "postgres",
    "set_up",
    "sqlite",
    "stage",
]
