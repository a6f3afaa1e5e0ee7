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
from backburner.ports.store import (
    Agenda,
    Claim,
    Claimer,
    Delivery,
    Flags,
    Person,
    Rescued,
    Reservation,
    Store,
    Tx,
)

__all__ = [
    "EVERYTHING",
    "LONGEST_ID",
    "Agenda",
    "Bus",
    "Claim",
    "Claimer",
    "Delivery",
    "Flags",
    "Hint",
    "HintKind",
    "Listener",
    "Person",
    "Rescued",
    "Reservation",
    "Statement",
    "Store",
    "Tx",
]
