"""A `Step`: everything that follows from one thing happening to a conversation."""

from dataclasses import dataclass
from enum import StrEnum

from backburner.core.conversation import Conversation, MessageRole, Source
from backburner.core.ids import MessageId, QuestionId
from backburner.core.notice import Notice
from backburner.core.question import Question
from backburner.core.run import NewItem, SkippedSlots
from backburner.core.tool_policy import Grant


class Stops(StrEnum):
    """Which runs are cancelled, running or handed back, and which inbox items nobody will serve."""

    NOTHING = "nothing"
    WORK = "work"  #: Background runs, and what would start one.
    REPLIES = "replies"  #: Replies, and what would be replied to.
    EVERYTHING = "everything"


class FollowerEvent(StrEnum):
    """What conversations that wait for this one are told."""

    COMPLETED = "completed"
    ENDED = "ended"  #: In error, cancelled, or paused for failures.
    GONE = "gone"  #: Archived or deleted.
    STOPPED = "stopped"  #: Both at once: its work was cancelled, and it is archived.


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    role: MessageRole
    content: str
    source: Source
    #: Given where something refers to it; else it gets one when it is stored.
    id: MessageId | None = None
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What a child tells the conversation that made it."""

    text: str
    #: The work behind it went wrong.
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    #: What now is.
    conversation: Conversation
    #: What to write down.
    messages: tuple[NewMessage, ...] = ()
    asked: tuple[Question, ...] = ()
    answered: tuple[tuple[QuestionId, str], ...] = ()
    withdrawn: tuple[QuestionId, ...] = ()
    grants: tuple[Grant, ...] = ()
    inbox: tuple[NewItem, ...] = ()
    skipped: tuple[SkippedSlots, ...] = ()
    stops: Stops = Stops.NOTHING
    #: A background run that was handed back will not go on.
    drops_queued: bool = False
    #: Whom to tell.
    notices: tuple[Notice, ...] = ()
    report: Report | None = None
    signal: FollowerEvent | None = None


def system_message(text: str) -> NewMessage:
    return NewMessage(role=MessageRole.SYSTEM, content=text, source=Source.WORKER)


def worker_message(text: str | None) -> tuple[NewMessage, ...]:
    """Put the agent's words from a background run into a message, if it had any."""
    if text is None:
        return ()
    return (NewMessage(role=MessageRole.ASSISTANT, content=text, source=Source.WORKER),)
