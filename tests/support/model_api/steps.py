"""Steps of a scripted reply, for either API.

A reply is a list of steps. It may contain a `Usage` of the core: the usage that is reported.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backburner.core.allowance import Usage
from support.model_api.request import ModelRequest


@dataclass(frozen=True, slots=True)
class Say:
    text: str
    #: The number of pieces it is streamed in.
    pieces: int = 1


@dataclass(frozen=True, slots=True)
class CallTool:
    """Call a tool by its plain name; arguments given as text are sent unchanged, valid or not."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GiveOutcome:
    """End with an outcome, in the way that the request offers."""

    value: Any


@dataclass(frozen=True, slots=True)
class Finish:
    """End for another reason than being done: "length" or "filter"."""

    reason: str


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
    """Send nothing more until the client disconnects."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """Send bytes that are neither an event stream nor JSON, and end."""

    data: bytes = b"\x00<html>Bad gateway</html>\n\ndata: {no json\n\n"


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait for some seconds, or until an event is set."""

    until: asyncio.Event | float


Fault = Cut | Stall | Garbage | Delay
Step = Say | CallTool | GiveOutcome | Usage | Finish | Refuse | Fault
Reply = Sequence[Step]
#: A reply as a function of the request.
Script = Callable[[ModelRequest], Reply]

#: Roughly.
BYTES_PER_TOKEN = 4


def finish_of(reply: Reply) -> str:
    """Return why a reply ends, if not because it is done."""
    return next((step.reason for step in reply if isinstance(step, Finish)), "")


def usage_of(reply: Reply, request: ModelRequest) -> Usage:
    """Return the usage that a reply reports, or else an estimate."""
    reported = next((step for step in reply if isinstance(step, Usage)), None)
    size = sum(len(str(step)) for step in reply)
    return reported or Usage(
        input=request.size // BYTES_PER_TOKEN, output=1 + size // BYTES_PER_TOKEN
    )


def split(say: Say) -> Sequence[str]:
    """Cut a text into about equal pieces, none of them empty."""
    length = max(1, -(-len(say.text) // max(1, say.pieces)))
    return [say.text[at : at + length] for at in range(0, len(say.text), length)]
