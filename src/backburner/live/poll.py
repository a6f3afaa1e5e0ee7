"""Reads what is new for those who follow: all of it in one transaction."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from backburner.core.ids import ConversationId, UserId
from backburner.ports import Change, ReplyDraft, Tx

#: How many changes a client may have missed; with more it had better look at everything.
MAX_MISSED_EVENTS = 1000
#: How long a transaction may take whose changes a look at everybody has to find.
MAX_POLL_LOOKBACK = timedelta(seconds=90)


class NewSubscriber(NamedTuple):
    """With what somebody begins."""

    newest: int
    #: None: too much, or nobody knows.
    missed: list[Change] | None
    drafts: list[ReplyDraft]


@dataclass(slots=True)
class PollResult:
    """What the reader finds at one go."""

    at: datetime
    good: frozenset[str]
    #: By user: what is new, and what is being said elsewhere.
    changes: dict[UserId, list[Change]] = field(default_factory=dict)
    drafts: dict[UserId, list[ReplyDraft]] = field(default_factory=dict)
    #: In the order of those who join.
    joined: list[NewSubscriber] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Poll:
    """What is to be read."""

    hinted: dict[UserId, set[ConversationId] | None]
    positions: dict[UserId, int]
    joining: list[tuple[UserId, int | None]]
    held: set[tuple[UserId, str]]
    #: When it was last looked for everybody; None: it is not time for that.
    since: datetime | None

    def run(self, tx: Tx) -> PollResult:
        found = PollResult(at=tx.now, good=tx.credentials.still_good(self.held, now=tx.now))
        for user, where in self.hinted.items():
            # Drafts first: one that is read too late would come after the message it became.
            found.drafts[user] = list(tx.events.drafts(user, where))
            self._read_changes(tx, found, user)
        if self.since is not None:
            for user, newest in tx.events.newest_since(self.since - MAX_POLL_LOOKBACK).items():
                if newest > self.positions.get(user, newest) and user not in found.changes:
                    self._read_changes(tx, found, user)
        found.joined = [self._join(tx, user, after) for user, after in self.joining]
        return found

    def _read_changes(self, tx: Tx, found: PollResult, user: UserId) -> None:
        position = self.positions[user]
        found.changes[user] = list(tx.events.after(user, position, limit=MAX_MISSED_EVENTS))

    def _join(self, tx: Tx, user: UserId, after: int | None) -> NewSubscriber:
        drafts = list(tx.events.drafts(user, None))
        newest = tx.events.newest(user)
        if after is None:
            return NewSubscriber(newest, [], drafts)
        if not tx.events.is_known(user, after):
            return NewSubscriber(newest, None, drafts)
        missed = list(tx.events.after(user, after, limit=MAX_MISSED_EVENTS + 1))
        is_too_much = len(missed) > MAX_MISSED_EVENTS
        # What came since the newest was read is there as well.
        newest = max([newest, *(one.number for one in missed)])
        return NewSubscriber(newest, None if is_too_much else missed, drafts)
