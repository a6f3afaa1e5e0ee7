"""A stand-in for the APIs of models, on loopback, that says what it is told to say."""

from backburner.core.allowance import Usage
from support.model_api.heard import Heard
from support.model_api.server import ModelApi
from support.model_api.steps import (
    CallTool,
    Cut,
    Delay,
    Garbage,
    GiveOutcome,
    Refuse,
    Reply,
    Say,
    Script,
    Stall,
    Step,
)

__all__ = [
    "CallTool",
    "Cut",
    "Delay",
    "Garbage",
    "GiveOutcome",
    "Heard",
    "ModelApi",
    "Refuse",
    "Reply",
    "Say",
    "Script",
    "Stall",
    "Step",
    "Usage",
]
