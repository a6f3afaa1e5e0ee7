"""What a model is to do in one reply, whichever API it is asked through.

A reply is a list of these. `Usage` from the core may stand in it too: what the reply is said to
have used.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backburner.core.allowance import Usage
from support.model_api.heard import Heard


@dataclass(frozen=True, slots=True)
class Say:
    text: str
    #: In how many pieces it is streamed.
    pieces: int = 1


@dataclass(frozen=True, slots=True)
class CallTool:
    """Call a tool by its plain name; text instead of arguments is sent as it is, valid or not."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GiveOutcome:
    """End with a value, in whatever way the request offers."""

    value: Any


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with an error; after other steps, in the middle of the stream."""

    status: int
    retry_after: str | None = None
    message: str = "The model said no."


@dataclass(frozen=True, slots=True)
class Cut:
    """Break the connection."""


@dataclass(frozen=True, slots=True)
class Stall:
    """Send nothing more until the other side has gone."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """Send what is neither a stream of events nor JSON, and end."""

    data: bytes = b"\x00<html>Bad gateway</html>\n\ndata: {no json\n\n"


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait so many seconds, or until something is set."""

    until: asyncio.Event | float


Fault = Cut | Stall | Garbage | Delay
Step = Say | CallTool | GiveOutcome | Usage | Refuse | Fault
Reply = Sequence[Step]
#: A reply as a function of what the model was asked.
Script = Callable[[Heard], Reply]

#: About how many bytes make a token.
BYTES_IN_TOKEN = 4


def usage_of(reply: Reply, heard: Heard) -> Usage:
    """Say what a reply used; where it does not say, what it comes to by the length of all."""
    told = next((step for step in reply if isinstance(step, Usage)), None)
    said = sum(len(str(step)) for step in reply)
    return told or Usage(input=heard.size // BYTES_IN_TOKEN, output=1 + said // BYTES_IN_TOKEN)


def split(say: Say) -> Sequence[str]:
    """Cut a text into about equal pieces, none of them empty."""
    length = max(1, -(-len(say.text) // max(1, say.pieces)))
    return [say.text[at : at + length] for at in range(0, len(say.text), length)]
