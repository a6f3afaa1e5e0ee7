"""`Step`: the complete result of a transition."""

from dataclasses import dataclass, replace
from enum import StrEnum

from backburner.core import routing
from backburner.core.content.file import FileReference
from backburner.core.conversation import Conversation, MessageRole, Source
from backburner.core.ids import GrantId, MessageId, QuestionId
from backburner.core.notice import Notice
from backburner.core.question import Question
from backburner.core.run import NewItem, RunKind, SkippedSlots
from backburner.core.tool_policy import Grant


class Stops(StrEnum):
    """The runs to cancel, whether running or queued, and the inbox items to drop."""

    NOTHING = "nothing"
    WORK = "work"  #: Background runs, and items that would start one.
    REPLIES = "replies"  #: Replies, and items that would get one.
    EVERYTHING = "everything"


class FollowerEvent(StrEnum):
    """An event of a conversation, for the conversations scheduled after it."""

    COMPLETED = "completed"
    ENDED = "ended"  #: It ended in error, was cancelled, or is paused for failures.
    GONE = "gone"  #: It was archived or deleted.
    STOPPED = "stopped"  #: Its work was cancelled and it was archived, in one step.


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    role: MessageRole
    content: str
    source: Source
    #: Set if something refers to the message; else it gets an id when it is stored.
    id: MessageId | None = None
    outside: bool = False
    #: The question that it shows in our own words.
    shows: QuestionId | None = None
    #: It says what the user has just done, and is no news to them.
    own: bool = False
    #: The question whose end it records.
    closes: QuestionId | None = None
    files: tuple[FileReference, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """A report of a child conversation to its parent."""

    text: str
    #: The work failed or was cancelled.
    failed: bool = False
    #: The user cancelled it, and so knows it already.
    cancelled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    #: The conversation after the event.
    conversation: Conversation
    #: Records to store.
    messages: tuple[NewMessage, ...] = ()
    asked: tuple[Question, ...] = ()
    answered: tuple[tuple[QuestionId, str], ...] = ()
    withdrawn: tuple[QuestionId, ...] = ()
    grants: tuple[Grant, ...] = ()
    #: The work that single-use grants were given for has ended.
    ends_grants: tuple[GrantId, ...] = ()
    #: The work is not what its grants were given for: all of them end.
    ends_all_grants: bool = False
    inbox: tuple[NewItem, ...] = ()
    skipped: tuple[SkippedSlots, ...] = ()
    stops: Stops = Stops.NOTHING
    #: A queued background run is dropped.
    drops_queued: bool = False
    #: Notices to the user, the report to the parent, and the event for followers.
    notices: tuple[Notice, ...] = ()
    report: Report | None = None
    signal: FollowerEvent | None = None

    def __post_init__(self) -> None:
        """Drop what messages asked for with the runs and items that it was for."""
        dropped = list[RunKind]()
        if self.stops in (Stops.REPLIES, Stops.EVERYTHING):
            dropped.append(RunKind.REPLY)
        if self.stops in (Stops.WORK, Stops.EVERYTHING):
            dropped.append(RunKind.BACKGROUND)
        for kind in dropped:
            if routing.request_for(self.conversation, kind):
                conversation = routing.with_request(self.conversation, kind, "")
                object.__setattr__(self, "conversation", conversation)

    def then(self, following: "Step") -> "Step":
        """Combine with a step that only adds messages, questions and notices."""
        return replace(
            self,
            conversation=following.conversation,
            messages=(*self.messages, *following.messages),
            asked=(*self.asked, *following.asked),
            notices=(*self.notices, *following.notices),
        )


def system_message(text: str, *, own: bool = False) -> NewMessage:
    return NewMessage(role=MessageRole.SYSTEM, content=text, source=Source.WORKER, own=own)


def worker_message(text: str | None) -> tuple[NewMessage, ...]:
    """Make a message from the text of a background run, if there is one."""
    if text is None:
        return ()
    return (NewMessage(role=MessageRole.ASSISTANT, content=text, source=Source.WORKER),)
