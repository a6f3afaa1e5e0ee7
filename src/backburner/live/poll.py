"""One read of the feed: changes and drafts for all subscribers, in one transaction."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from backburner.core.ids import ConversationId, UserId
from backburner.ports import Change, ReplyDraft, Tx

#: A client that missed more changes reloads everything.
MAX_MISSED_EVENTS = 1000
#: The longest transaction whose changes a poll still finds.
MAX_POLL_LOOKBACK = timedelta(seconds=90)


class NewSubscriber(NamedTuple):
    """The state that a new subscriber starts with."""

    newest: int
    #: None: too many, or no longer in the log.
    missed: list[Change] | None
    drafts: list[ReplyDraft]


@dataclass(slots=True)
class PollResult:
    """New changes and drafts."""

    at: datetime
    good: frozenset[str]
    #: By user; drafts are those of other processes.
    changes: dict[UserId, list[Change]] = field(default_factory=dict)
    drafts: dict[UserId, list[ReplyDraft]] = field(default_factory=dict)
    #: In the order of `joining`.
    joined: list[NewSubscriber] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Poll:
    """A read that is due."""

    hinted: dict[UserId, set[ConversationId] | None]
    positions: dict[UserId, int]
    joining: list[tuple[UserId, int | None]]
    credentials: set[tuple[UserId, str]]
    #: The last poll of all users; None: only hinted users are read.
    since: datetime | None

    def run(self, tx: Tx) -> PollResult:
        result = PollResult(at=tx.now, good=tx.credentials.valid(self.credentials, now=tx.now))
        for user, conversations in self.hinted.items():
            self._read(tx, result, user, conversations)
        if self.since is not None:
            for user, newest in tx.events.latest_by_user(self.since - MAX_POLL_LOOKBACK).items():
                if newest > self.positions.get(user, newest) and user not in result.changes:
                    self._read(tx, result, user, None)
        result.joined = [self._join(tx, user, after) for user, after in self.joining]
        return result

    def _read(
        self, tx: Tx, result: PollResult, user: UserId, conversations: set[ConversationId] | None
    ) -> None:
        position = self.positions[user]
        result.changes[user] = list(tx.events.after(user, position, limit=MAX_MISSED_EVENTS))
        # After the changes: a draft read before them could be a message by now.
        result.drafts[user] = list(tx.events.drafts(user, conversations))

    def _join(self, tx: Tx, user: UserId, after: int | None) -> NewSubscriber:
        newest = tx.events.latest(user)
        missed: list[Change] | None = []
        if after is not None:
            missed = self._missed(tx, user, after)
            # Changes since `newest` was read are included.
            newest = max([newest, *(change.number for change in missed or ())])
        # Last, as in `_read`.
        return NewSubscriber(newest, missed, list(tx.events.drafts(user, None)))

    def _missed(self, tx: Tx, user: UserId, after: int) -> list[Change] | None:
        if not tx.events.has_all_since(user, after):
            return None
        missed = list(tx.events.after(user, after, limit=MAX_MISSED_EVENTS + 1))
        return missed if len(missed) <= MAX_MISSED_EVENTS else None
