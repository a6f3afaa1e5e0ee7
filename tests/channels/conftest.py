"""What tests of channels share."""

from support.stage.stages import clock, database, set_up

__all__ = ["clock", "database", "set_up"]
