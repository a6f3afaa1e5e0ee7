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
from backburner.ports.channel import Channel
from backburner.ports.engine import (
    Ended,
    Engine,
    Event,
    Gate,
    Offer,
    Remembered,
    Request,
    Said,
    Toolbox,
    ToolResult,
)
from backburner.ports.process import Launcher
from backburner.ports.store import (
    Account,
    Agenda,
    Claim,
    Claimer,
    Delivery,
    Flags,
    Person,
    Rescued,
    Store,
    Tx,
)

__all__ = [
    "EVERYTHING",
    "LONGEST_ID",
    "Account",
    "Agenda",
    "Bus",
    "Channel",
    "Claim",
    "Claimer",
    "Delivery",
    "Ended",
    "Engine",
    "Event",
    "Flags",
    "Gate",
    "Hint",
    "HintKind",
    "Launcher",
    "Listener",
    "Offer",
    "Person",
    "Remembered",
    "Request",
    "Rescued",
    "Said",
    "Statement",
    "Store",
    "ToolResult",
    "Toolbox",
    "Tx",
]
