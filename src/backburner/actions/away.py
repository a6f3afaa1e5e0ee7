"""While you were away: what ran, what needs you, what it cost, and what you were told."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backburner.actions.deps import Deps
from backburner.core.errors import BadRequest
from backburner.core.ids import UserId
from backburner.ports import Needs, RanHere, RunCounts, Spent, ToldSince, Tx

#: Of each kind; the totals count all there are.
MOST = 50
#: Nobody is told of what is longer ago; most of it is deleted by then.
LONGEST = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    since: datetime
    until: datetime
    totals: RunCounts
    ran: Sequence[RanHere]
    needs: Sequence[Needs]
    spent: Spent
    told: Sequence[ToldSince]


async def summarise(deps: Deps, user: UserId, *, since: datetime | None = None) -> Summary:
    """Sum up what happened since then, or since the user was last told."""

    def work(tx: Tx) -> Summary:
        away, now = tx.absence, tx.now
        start = max(since or away.since(user), now - LONGEST)
        if start > now:
            raise BadRequest("That is yet to come.", hint="Give a time that has passed.")
        return Summary(
            since=start,
            until=now,
            totals=away.totals(user, start),
            ran=away.ran(user, start, most=MOST),
            needs=away.needs(user, most=MOST),
            spent=away.spent(user, start),
            told=away.told(user, start, most=MOST),
        )

    return await deps.store.transact(work)


async def come_back(deps: Deps, user: UserId, *, until: datetime | None = None) -> datetime:
    """Note that a user has seen all that happened until then; what is noted never goes back."""

    def work(tx: Tx) -> datetime:
        tx.absence.end(user, min(until or tx.now, tx.now))
        return tx.absence.since(user)

    return await deps.store.transact(work)
