"""The vault is tried on both databases, with a file of master keys."""

from support.stage.either import database, one_sqlite
from support.stage.stages import clock

__all__ = ["clock", "database", "one_sqlite"]
