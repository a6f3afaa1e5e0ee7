"""The away summary: unattended runs, open questions, spend and notices since the last visit."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from backburner.actions.deps import Deps
from backburner.core.errors import BadRequest
from backburner.core.ids import ConversationId, UserId
from backburner.core.run import RunStatus
from backburner.core.work.timeline import AskedQuestion
from backburner.ports import (
    ConversationRuns,
    PendingQuestion,
    RecentNotice,
    RunBar,
    RunCounts,
    RunReport,
    SpendTotal,
    Tx,
)

#: Rows of each kind; the totals are complete.
MAX_AWAY_ROWS = 50
#: Runs on lines of time.
MAX_BARS = 500
#: The summary goes back no further: most older records are pruned.
MAX_AWAY = timedelta(days=30)


class LaneState(StrEnum):
    NEEDS_YOU = "needs_you"  #: A question is open.
    BROKE = "broke"  #: The last run failed.
    DONE = "done"  #: It has told something.
    QUIET = "quiet"  #: It ran, and had nothing to tell.


@dataclass(frozen=True, slots=True, kw_only=True)
class AwayLane:
    """A conversation on a line of time."""

    conversation_id: ConversationId
    title: str
    state: LaneState
    #: Its runs, by their start.
    bars: Sequence[RunBar]
    #: What it asked, oldest first.
    asked: Sequence[AskedQuestion]


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaySummary:
    since: datetime
    until: datetime
    totals: RunCounts
    conversations: Sequence[ConversationRuns]
    questions: Sequence[PendingQuestion]
    spent: SpendTotal
    notices: Sequence[RecentNotice]
    #: The last message of each conversation that had something to report.
    reports: Sequence[RunReport]
    #: What needs the user first, then what broke, what is done, and what was quiet.
    lanes: Sequence[AwayLane]
    #: How long the runs of the lanes have worked since then, without their waits.
    worked: timedelta
    #: There are more lanes, or older bars.
    is_cut: bool


async def summarise(deps: Deps, user: UserId, *, since: datetime | None = None) -> AwaySummary:
    """Summarise what happened since then, or since the user last marked it as seen."""

    def work(tx: Tx) -> AwaySummary:
        away, now = tx.away, tx.now
        start = max(since or away.since(user), now - MAX_AWAY)
        if start > now:
            raise BadRequest("`since` is in the future.", hint="Give a time in the past.")
        ran = away.runs_by_conversation(user, start, limit=MAX_AWAY_ROWS)
        questions = away.pending_questions(user, limit=MAX_AWAY_ROWS)
        notices = away.recent_notices(user, start, limit=MAX_AWAY_ROWS)
        ended = away.bars(user, start, limit=MAX_BARS + 1)
        bars = [*away.active_bars(user, limit=MAX_AWAY_ROWS), *ended[:MAX_BARS]]
        succeeded = {row.conversation for row in ran if row.counts.succeeded}
        succeeded |= {bar.conversation_id for bar in bars if bar.status is RunStatus.SUCCESS}
        reports = away.reports(user, succeeded, start)
        found = _find_lanes(bars, ran, questions, {report.conversation for report in reports})
        lanes = found[:MAX_AWAY_ROWS]
        ids = [lane.conversation_id for lane in lanes]
        asked = away.asked(user, ids, start, limit=MAX_BARS)
        return AwaySummary(
            since=start,
            until=now,
            totals=away.totals(user, start),
            conversations=ran,
            questions=questions,
            spent=away.spent(user, start),
            notices=notices,
            reports=reports,
            lanes=[_with_asked(lane, asked) for lane in lanes],
            worked=_sum_work(tx, user, bars, since=start),
            is_cut=len(ended) > MAX_BARS or len(found) > MAX_AWAY_ROWS,
        )

    return await deps.store.read(work)


def _find_lanes(
    bars: Sequence[RunBar],
    ran: Sequence[ConversationRuns],
    questions: Sequence[PendingQuestion],
    told: Collection[ConversationId],
) -> Sequence[AwayLane]:
    """Give each conversation a lane: what needs the user first, then what has run last."""
    titles = {bar.conversation_id: bar.title for bar in bars}
    titles |= {row.conversation: row.title for row in ran}
    titles |= {question.conversation: question.title for question in questions}
    needed = {question.conversation for question in questions}
    broken = {row.conversation for row in ran if row.failure is not None}
    runs = defaultdict[ConversationId, list[RunBar]](list)
    for bar in bars:
        runs[bar.conversation_id].append(bar)
    order = list(LaneState)

    def state_of(which: ConversationId) -> LaneState:
        if which in needed:
            return LaneState.NEEDS_YOU
        if which in broken:
            return LaneState.BROKE
        return LaneState.DONE if which in told else LaneState.QUIET

    lanes = [
        AwayLane(
            conversation_id=which,
            title=title,
            state=state_of(which),
            bars=sorted(runs[which], key=lambda bar: (bar.started_at, bar.run_id)),
            asked=(),
        )
        for which, title in titles.items()
    ]
    return sorted(lanes, key=lambda lane: order.index(lane.state))


def _with_asked(lane: AwayLane, asked: Sequence[tuple[ConversationId, AskedQuestion]]) -> AwayLane:
    own = [question for which, question in asked if which == lane.conversation_id]
    return replace(lane, asked=own)


def _sum_work(tx: Tx, user: UserId, bars: Sequence[RunBar], *, since: datetime) -> timedelta:
    parts = tx.browse.run_parts(user, [bar.run_id for bar in bars])
    total = timedelta()
    for bar in bars:
        for part in parts.get(bar.run_id, ()):
            began_at = max(part.began_at or bar.started_at, since)
            total += max(part.ended_at - began_at, timedelta())
        if bar.status is RunStatus.RUNNING:
            ended = [part.ended_at for part in parts.get(bar.run_id, ())]
            began_at = max([bar.started_at, since, *ended])
            total += max(tx.now - began_at, timedelta())
    return total


async def load_since(deps: Deps, user: UserId) -> datetime:
    """Return the time up to which the user has seen the summary."""
    return await deps.store.read(lambda tx: tx.away.since(user))


async def mark_seen(deps: Deps, user: UserId, *, until: datetime | None = None) -> datetime:
    """Record that the user has seen the summary up to then; the time never moves backwards."""

    def work(tx: Tx) -> datetime:
        tx.away.mark_seen(user, min(until or tx.now, tx.now))
        return tx.away.since(user)

    return await deps.store.transact(work)
