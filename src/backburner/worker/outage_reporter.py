"""Reports outages of models: each user is told once when work waits, and once when it is over.

One-time work that has waited too long is ended.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import structlog

from backburner.actions import steps
from backburner.actions.deps import Deps
from backburner.core import notice, retry, transitions
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.core.notice import Notice
from backburner.core.retry import Outage
from backburner.core.run import FailureKind
from backburner.core.transitions import Step
from backburner.ports import LateWork, OutageReport, Tx

#: Nobody is told about an outage that keeps their work waiting for less.
MIN_LATENESS = timedelta(minutes=1)
_BATCH = 100

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class OutageReporter:
    deps: Deps
    #: The profiles that were in an outage the last time, for the log.
    _known: frozenset[str] = frozenset()
    #: The first look: work that waited before, while nothing tried its model, waits anew.
    _began_at: datetime | None = None

    async def run_once(self) -> bool:
        outages, now = await self.deps.store.transact(lambda tx: (tx.outages.all(), tx.now))
        self._began_at = self._began_at or now
        self._log_changes(outages)
        for outage in outages:
            await self._report(outage)
        return await self.deps.store.transact(_report_ends)

    def _log_changes(self, outages: Sequence[Outage]) -> None:
        now = frozenset(outage.profile for outage in outages)
        for outage in outages:
            if outage.profile not in self._known:
                _log.warning("profile.unavailable", profile=outage.profile, error=outage.message)
        for profile in sorted(self._known - now):
            _log.info("profile.available", profile=profile)
        self._known = now

    async def _report(self, outage: Outage) -> None:
        """Go through all work that waits, some at a time."""
        if outage.kind is FailureKind.ACCESS_DENIED:
            await self.deps.store.transact(lambda tx: _tell_operators(tx, outage))
        last: LateWork | None = None
        while True:
            late = await self.deps.store.transact(partial(self._page, outage, last))
            if len(late) < _BATCH:
                return
            last = late[-1]

    def _page(self, outage: Outage, after: LateWork | None, tx: Tx) -> Sequence[LateWork]:
        profiles = [outage.profile]
        if outage.profile == self.deps.default_profile:
            profiles.append("")
        before = tx.now - MIN_LATENESS
        late = tx.outages.late_work(profiles, after, before=before, limit=_BATCH)
        # Each in the conversation that waits longest.
        places = {work.user_id: work.conversation_id for work in reversed(late)}
        for user, conversation_id in places.items():
            _tell(tx, outage, user, conversation_id)
        # A profile that does not rest has not been tried lately.
        if outage.until > tx.now:
            for work in late:
                self._end_if_too_late(tx, outage, work)
        return late

    def _end_if_too_late(self, tx: Tx, outage: Outage, work: LateWork) -> None:
        waited = tx.now - max(work.due_at, outage.since, self._began_at or tx.now)
        run_timeout = work.run_timeout or self.deps.limits.run_timeout
        if waited < retry.max_outage_wait(work.kind, run_timeout):
            return
        conversation = tx.conversations.lock(work.user_id, work.conversation_id)
        if conversation.next_run_at == work.due_at and not conversation.is_recurring:
            steps.save(tx, transitions.end_in_outage(conversation, outage.message, now=tx.now))


def _tell_operators(tx: Tx, outage: Outage) -> None:
    for user, conversation_id in tx.outages.operators():
        _tell(tx, outage, user, conversation_id)


def _tell(tx: Tx, outage: Outage, user: UserId, conversation_id: ConversationId) -> None:
    if tx.outages.report(OutageReport(user, conversation_id, outage.profile)):
        _notify(tx, user, conversation_id, notice.of_outage(outage.message))


def _report_ends(tx: Tx) -> bool:
    ended = tx.outages.take_ended(limit=_BATCH)
    for report in ended:
        _notify(tx, report.user_id, report.conversation_id, notice.of_outage_end())
    return len(ended) == _BATCH


def _notify(tx: Tx, user: UserId, conversation_id: ConversationId, new: Notice) -> None:
    try:
        conversation = tx.conversations.lock(user, conversation_id)
    except NotFound:
        return
    tx.conversations.save(Step(conversation=conversation, notices=(new,)))
