"""The away summary: unattended runs, open questions, spend and notices since the last visit."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backburner.actions.deps import Deps
from backburner.core.errors import BadRequest
from backburner.core.ids import UserId
from backburner.ports import (
    ConversationRuns,
    PendingQuestion,
    RecentNotice,
    RunCounts,
    SpendTotal,
    Tx,
)

#: Rows of each kind; the totals are complete.
MAX_AWAY_ROWS = 50
#: The summary goes back no further: most older records are pruned.
MAX_AWAY = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaySummary:
    since: datetime
    until: datetime
    totals: RunCounts
    conversations: Sequence[ConversationRuns]
    questions: Sequence[PendingQuestion]
    spent: SpendTotal
    notices: Sequence[RecentNotice]


async def summarise(deps: Deps, user: UserId, *, since: datetime | None = None) -> AwaySummary:
    """Summarise what happened since then, or since the user last marked it as seen."""

    def work(tx: Tx) -> AwaySummary:
        away, now = tx.away, tx.now
        start = max(since or away.since(user), now - MAX_AWAY)
        if start > now:
            raise BadRequest("`since` is in the future.", hint="Give a time in the past.")
        return AwaySummary(
            since=start,
            until=now,
            totals=away.totals(user, start),
            conversations=away.runs_by_conversation(user, start, limit=MAX_AWAY_ROWS),
            questions=away.pending_questions(user, limit=MAX_AWAY_ROWS),
            spent=away.spent(user, start),
            notices=away.recent_notices(user, start, limit=MAX_AWAY_ROWS),
        )

    return await deps.store.read(work)


async def mark_seen(deps: Deps, user: UserId, *, until: datetime | None = None) -> datetime:
    """Record that the user has seen the summary up to then; the time never moves backwards."""

    def work(tx: Tx) -> datetime:
        tx.away.mark_seen(user, min(until or tx.now, tx.now))
        return tx.away.since(user)

    return await deps.store.transact(work)
