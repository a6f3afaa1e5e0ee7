"""What the actions need from the machines, as Protocols; the machines are plugged in by app.py."""

from backburner.ports.bus import (
    EVERYTHING,
    LONGEST_ID,
    Bus,
    Hint,
    HintKind,
    Listener,
    Statement,
)
from backburner.ports.store import Claim, Delivery, Flags

__all__ = [
    "EVERYTHING",
    "LONGEST_ID",
    "Bus",
    "Claim",
    "Delivery",
    "Flags",
    "Hint",
    "HintKind",
    "Listener",
    "Statement",
]
