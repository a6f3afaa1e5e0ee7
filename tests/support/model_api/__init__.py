"""A fake model API on loopback that plays scripted replies."""

from backburner.core.allowance import Usage
from support.model_api.request import ModelRequest
from support.model_api.server import ModelApi
from support.model_api.steps import (
    CallTool,
    Cut,
    Delay,
    Finish,
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
    "Finish",
    "Garbage",
    "GiveOutcome",
    "ModelApi",
    "ModelRequest",
    "Refuse",
    "Reply",
    "Say",
    "Script",
    "Stall",
    "Step",
    "Usage",
]
