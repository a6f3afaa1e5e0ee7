"""What the actions need from the machines, as Protocols; the machines are plugged in by app."""

from backburner.ports.accounts import Accounts, Attempts, Credentials
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
from backburner.ports.mine import Mine
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
from backburner.ports.workspace import MOST_SHOWN, Network, Page, Ran, Shell

__all__ = [
    "EVERYTHING",
    "LONGEST_ID",
    "MOST_SHOWN",
    "Account",
    "Accounts",
    "Agenda",
    "Attempts",
    "Bus",
    "Channel",
    "Claim",
    "Claimer",
    "Credentials",
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
    "Mine",
    "Network",
    "Offer",
    "Page",
    "Person",
    "Ran",
    "Remembered",
    "Request",
    "Rescued",
    "Said",
    "Shell",
    "Statement",
    "Store",
    "ToolResult",
    "Toolbox",
    "Tx",
]
