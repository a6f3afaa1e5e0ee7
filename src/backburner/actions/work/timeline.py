"""The timeline of a conversation: messages, runs, questions and skipped slots, newest first.

Each kind is read in its own order from where the last page ended, and they are merged by time, so
that nothing is shown twice or left out whatever the clocks did.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from backburner.actions.deps import Deps
from backburner.core.conversation import Message, MessageRole
from backburner.core.ids import ConversationId, MessageId, QuestionId, RunId, UserId
from backburner.core.run import Run
from backburner.ports import PageKey, RunDetails, TimelineQuestion, Tx


class ItemType(StrEnum):
    MESSAGE = "message"
    RUN = "run"  #: At the time when it began.
    SKIPPED = "skipped"  #: Slots without a run.
    QUESTION = "question"  #: At the time when it was asked.


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineItem:
    type: ItemType
    at: datetime
    #: One of these.
    message: Message | None = None
    run: Run | None = None
    asked: TimelineQuestion | None = None

    @property
    def run_id(self) -> RunId | None:
        """The run that it is, that wrote it, or that asked it."""
        if self.message is not None:
            return self.message.run_id
        if self.asked is not None:
            return self.asked.question.run_id
        return None if self.run is None else self.run.id

    @property
    def rank(self) -> int:
        """Its place among items of the same moment."""
        is_said = self.message is not None and self.message.role is MessageRole.USER
        ranks = {ItemType.SKIPPED: 1, ItemType.RUN: 2, ItemType.MESSAGE: 3, ItemType.QUESTION: 4}
        return 0 if is_said else ranks[self.type]


#: In the key of a page, for kinds of which nothing was shown.
_NO_TIME = datetime.max.replace(tzinfo=UTC)
#: The types of the parts of a key.
KEY_TYPES = (str, datetime, int, str, datetime, str)


@dataclass(frozen=True, slots=True)
class Position:
    """The last item shown of each kind; None: none was shown."""

    message: MessageId | None = None
    run: tuple[datetime, int, RunId] | None = None
    asked: tuple[datetime, QuestionId] | None = None

    @classmethod
    def of_key(cls, key: PageKey | None) -> "Position":
        if key is None:
            return cls()
        message, run_at, epoch, run, asked_at, question = key
        return cls(
            message=MessageId(message) if message else None,
            run=(run_at, epoch, RunId(run)) if run else None,
            asked=(asked_at, QuestionId(question)) if question else None,
        )

    @property
    def key(self) -> PageKey:
        run, asked = self.run or (_NO_TIME, 0, ""), self.asked or (_NO_TIME, "")
        return (self.message or "", *run, *asked)

    def after(self, item: TimelineItem) -> "Position":
        message, run, asked = self.message, self.run, self.asked
        if item.message is not None:
            message = item.message.id
        elif item.run is not None:
            run = (item.run.started_at, item.run.epoch, item.run.id)
        elif item.asked is not None:
            asked = (item.asked.question.asked_at, item.asked.question.id)
        return Position(message, run, asked)


@dataclass(frozen=True, slots=True)
class TimelinePage:
    items: Sequence[TimelineItem]
    #: Every run that an item names and that is still stored, and what it did and cost.
    runs: Mapping[RunId, tuple[Run, RunDetails]]
    #: None: this is the last page.
    next: Position | None


async def page(
    deps: Deps, user: UserId, conversation_id: ConversationId, after: Position, *, limit: int
) -> TimelinePage:
    return await deps.store.read(lambda tx: _page(tx, user, conversation_id, after, limit=limit))


def _page(
    tx: Tx, user: UserId, conversation_id: ConversationId, after: Position, *, limit: int
) -> TimelinePage:
    sources = _read_sources(tx, user, conversation_id, after, limit=limit + 1)
    items, position = list[TimelineItem](), after
    while len(items) < limit and (heads := [source for source in sources if source]):
        newest = max(heads, key=lambda source: (source[0].at, source[0].rank))
        item = newest.pop(0)
        items.append(item)
        position = position.after(item)
    runs = {item.run.id: item.run for item in items if item.run is not None}
    named = {item.run_id for item in items if item.run_id is not None} - runs.keys()
    runs |= {run.id: run for run in tx.browse.runs_with_ids(user, conversation_id, named)}
    details = tx.browse.run_details(user, list(runs))
    return TimelinePage(
        items,
        {run_id: (run, details.get(run_id, RunDetails())) for run_id, run in runs.items()},
        position if any(sources) else None,
    )


def _read_sources(
    tx: Tx, user: UserId, conversation_id: ConversationId, after: Position, *, limit: int
) -> list[list[TimelineItem]]:
    """Read the next items of each kind, newest first."""
    last_message = None if after.message is None else (after.message,)
    messages = tx.browse.messages(user, conversation_id, last_message, limit=limit)
    runs = tx.browse.runs(user, conversation_id, after.run, limit=limit)
    asked = tx.browse.asked(user, conversation_id, after.asked, limit=limit)
    return [
        [TimelineItem(type=ItemType.MESSAGE, at=one.created_at, message=one) for one in messages],
        [_run_item(run) for run in runs],
        [
            TimelineItem(type=ItemType.QUESTION, at=one.question.asked_at, asked=one)
            for one in asked
        ],
    ]


def _run_item(run: Run) -> TimelineItem:
    type_ = ItemType.RUN if run.skipped is None else ItemType.SKIPPED
    return TimelineItem(type=type_, at=run.started_at, run=run)
