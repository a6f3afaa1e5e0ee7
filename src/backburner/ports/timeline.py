"""The parts of the timeline of a conversation, besides messages and runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from backburner.core.allowance import Cost
from backburner.core.question import Question
from backburner.core.work.activity import CallSummary


@dataclass(frozen=True, slots=True)
class Answerer:
    """The credential with which a question was answered, and so where."""

    #: token, session, link and so on.
    kind: str
    #: Its name, such as that of a token or a channel.
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineQuestion:
    """A question of a conversation, open or closed."""

    question: Question
    #: None: it is open.
    closed_at: datetime | None
    #: None: it is open, or was withdrawn.
    answer: str | None
    #: None: nobody has answered it, or it was a message in the chat.
    answered_by: Answerer | None


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A tool call without its result."""

    server: str
    call: CallSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetails:
    """The steps of a run and its cost."""

    #: The number of its tool calls, and the last of them, oldest first.
    calls: int = 0
    shown_calls: Sequence[ShownCall] = ()
    #: None: it has called no model, as far as is known.
    cost: Cost | None = None
