"""What a task would do, when, with what, for whom and at what cost; and one run of it, to see."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from backburner.actions import create, lookup
from backburner.actions.deps import Deps
from backburner.core import schedule as schedules
from backburner.core import transitions
from backburner.core.conversation import MAX_TITLE_CHARS, Conversation, Notify, Status
from backburner.core.errors import Conflict
from backburner.core.ids import ConversationId, UserId, new_conversation_id
from backburner.core.schedule import Immediate
from backburner.core.transitions import TEST_RUN_BATCH, Brief, Terms
from backburner.core.work import estimate as estimates
from backburner.core.work.estimate import Estimate
from backburner.ports import Tx

PREVIEWED_TIMES = 5
#: What an estimate is made of.
_MAX_SAMPLED_RUNS = 20
_SAMPLE_PERIOD = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPreview:
    task: Conversation
    zone: str
    times: tuple[datetime, ...]
    profile: str
    #: None: nothing like it has run, so nobody knows.
    cost: Estimate | None


async def preview(deps: Deps, user: UserId, conversation_id: ConversationId) -> TaskPreview:
    """Show a task before it runs; nothing changes by it."""

    def work(tx: Tx) -> TaskPreview:
        found = lookup.require(tx.conversations.load(user, conversation_id))
        profile = found.profile or deps.default_profile
        return TaskPreview(
            task=found,
            zone=tx.users.load(user).zone,
            times=_next_times(found, tx.now),
            profile=profile,
            cost=_cost(tx, found, profile),
        )

    return await deps.store.transact(work)


async def start_test_run(deps: Deps, user: UserId, conversation_id: ConversationId) -> Conversation:
    """Do the work of a task once, beside it: nothing but a message comes of it there."""
    job, tried = new_conversation_id(), list[bool]()

    def work(tx: Tx) -> Conversation:
        found = lookup.require(tx.conversations.lock(user, conversation_id))
        made = create.find_committed(tx, user, job, tried)
        tried.append(True)
        if made is None:
            _check(tx, found)
            step = transitions.start_job(job, user, _brief(found), now=tx.now)
            made = replace(step.conversation, profile=found.profile)
            tx.conversations.add(replace(step, conversation=made))
        return made

    return await deps.store.transact(work)


def _next_times(found: Conversation, now: datetime) -> tuple[datetime, ...]:
    timed, first = found.schedule, found.next_run_at
    if timed is None:
        return ()
    if first is None:
        return schedules.upcoming(timed, now=now, count=PREVIEWED_TIMES)
    return (first, *islice(schedules.slots(timed, after=first), PREVIEWED_TIMES - 1))


def _cost(tx: Tx, found: Conversation, profile: str) -> Estimate | None:
    own = tx.tasks.recent_costs(found.user_id, found.id, limit=_MAX_SAMPLED_RUNS)
    alike = own or tx.tasks.recent_costs_by_profile(
        found.user_id, profile, since=tx.now - _SAMPLE_PERIOD, limit=_MAX_SAMPLED_RUNS
    )
    left = None if found.max_runs is None else max(0, found.max_runs - found.run_count)
    often = None
    if found.schedule is not None:
        often = estimates.runs_per_month(found.schedule, left=left, now=tx.now)
    return estimates.estimate(own, alike, runs_per_month=often)


def _check(tx: Tx, found: Conversation) -> None:
    if found.status is Status.ARCHIVED:
        raise Conflict("This task is archived.", hint="Reopen it first.")
    if any(
        child.batch == TEST_RUN_BATCH
        for child in tx.conversations.open_children(found.user_id, found.id)
    ):
        raise Conflict("A test run of this task is under way.", hint="Wait for its result.")


def _brief(found: Conversation) -> Brief:
    terms = Terms.of(found)
    return Brief(
        title=f"Test run of {found.title}"[:MAX_TITLE_CHARS],
        prompt=terms.prompt,
        schedule=Immediate(),
        description=terms.description,
        params=found.state.context,
        # It is looked at where it is; only what it asks goes out.
        notify=Notify.NEVER,
        run_timeout=terms.run_timeout,
        tools=terms.tools,
        profile=found.requested_profile,
        reports_to=terms.reports_to,
        parent_id=found.id,
        batch=TEST_RUN_BATCH,
    )
