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
    """What a new subscriber starts with."""

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
    held: set[tuple[UserId, str]]
    #: The last poll of all users; None: only hinted users are read.
    since: datetime | None

    def run(self, tx: Tx) -> PollResult:
        found = PollResult(at=tx.now, good=tx.credentials.still_good(self.held, now=tx.now))
        for user, where in self.hinted.items():
            # Drafts first: read later, one could follow the message it became.
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
        # Changes since `newest` was read are included.
        newest = max([newest, *(one.number for one in missed)])
        return NewSubscriber(newest, None if is_too_much else missed, drafts)
