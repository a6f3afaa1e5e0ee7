"""Previews of a task: next times, tools and estimated cost; and a test run."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from backburner.actions import create, lookup
from backburner.actions.deps import Deps
from backburner.actions.work.instructions import CheckInstructions
from backburner.core import schedule as schedules
from backburner.core import transitions
from backburner.core.conversation import (
    MAX_TITLE_CHARS,
    Conversation,
    Notify,
    Status,
    mark_brief,
    may_contain_outside_text,
)
from backburner.core.errors import Conflict
from backburner.core.ids import ConversationId, UserId, new_conversation_id
from backburner.core.schedule import Immediate
from backburner.core.transitions import TEST_RUN_BATCH, Brief, Terms
from backburner.core.work import estimate as estimates
from backburner.core.work.estimate import Estimate
from backburner.core.work.views import TaskStatus, task_status
from backburner.ports import Tx

PREVIEWED_TIMES = 5
#: Runs that an estimate is based on.
_MAX_SAMPLED_RUNS = 20
_SAMPLE_PERIOD = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPreview:
    task: Conversation
    zone: str
    times: tuple[datetime, ...]
    profile: str
    #: None: unknown, because no similar run exists.
    cost: Estimate | None


async def preview(
    deps: Deps, user: UserId, conversation_id: ConversationId, *, is_past: bool = False
) -> TaskPreview:
    """Preview a task; with `is_past` also a chat whose work has ended."""

    def work(tx: Tx) -> TaskPreview:
        task = tx.conversations.load(user, conversation_id)
        if not (is_past and task.has_work):
            lookup.require(task)
        profile = task.profile or deps.default_profile
        return TaskPreview(
            task=task,
            zone=tx.users.load(user).zone,
            times=_next_times(task, tx.now),
            profile=profile,
            cost=_cost(tx, task, profile),
        )

    return await deps.store.read(work)


async def start_test_run(
    deps: Deps,
    user: UserId,
    conversation_id: ConversationId,
    *,
    check_instructions: CheckInstructions | None = None,
) -> Conversation:
    """Run a task once as a separate job; only its result message reaches the task.

    `check_instructions` refuses a caller who may not tell a proposal what to do: it may have been
    changed by anyone who may write, and nobody has approved it.
    """
    job_id, attempts = new_conversation_id(), list[bool]()

    def work(tx: Tx) -> Conversation:
        task = lookup.require(tx.conversations.lock(user, conversation_id))
        job = create.find_committed(tx, user, job_id, attempts)
        attempts.append(True)
        if job is None:
            is_proposed = task_status(task) is TaskStatus.PROPOSED
            if is_proposed and check_instructions is not None:
                check_instructions(tx, task)
            _check(tx, task)
            step = transitions.start_job(job_id, user, _brief(task), now=tx.now)
            marked = mark_brief(step.conversation, outside=may_contain_outside_text(task))
            job = replace(marked, profile=task.profile, folder=task.folder)
            tx.conversations.add(replace(step, conversation=job))
        return job

    return await deps.store.transact(work)


def _next_times(task: Conversation, now: datetime) -> tuple[datetime, ...]:
    schedule, first = task.schedule, task.next_run_at
    if schedule is None:
        return ()
    if first is None:
        return schedules.upcoming(schedule, now=now, count=PREVIEWED_TIMES)
    return (first, *islice(schedules.slots(schedule, after=first), PREVIEWED_TIMES - 1))


def _cost(tx: Tx, task: Conversation, profile: str) -> Estimate | None:
    own = tx.tasks.recent_costs(task.user_id, task.id, limit=_MAX_SAMPLED_RUNS)
    similar = own or tx.tasks.recent_costs_by_profile(
        task.user_id, profile, since=tx.now - _SAMPLE_PERIOD, limit=_MAX_SAMPLED_RUNS
    )
    left = None if task.max_runs is None else max(0, task.max_runs - task.run_count)
    frequency = None
    if task.schedule is not None:
        frequency = estimates.runs_per_month(task.schedule, left=left, now=tx.now)
    return estimates.estimate(own, similar, runs_per_month=frequency)


def _check(tx: Tx, task: Conversation) -> None:
    if task.status is Status.ARCHIVED:
        raise Conflict("This task is archived.", hint="Reopen it first.")
    for child in tx.conversations.open_children(task.user_id, task.id):
        if not transitions.is_test_run(child):
            continue
        if child.status is Status.WAITING_INPUT:
            raise Conflict(
                "A test run of this task waits for your answer.", hint="Answer it first."
            )
        raise Conflict("A test run of this task is already running.", hint="Wait for its result.")


def _brief(task: Conversation) -> Brief:
    terms = Terms.of(task)
    return Brief(
        title=f"Test run of {task.title}"[:MAX_TITLE_CHARS],
        prompt=terms.prompt,
        schedule=Immediate(),
        description=terms.description,
        params=task.state.context,
        # The user reads the result in the task; only questions are sent out.
        notify=Notify.NEVER,
        run_timeout=terms.run_timeout,
        tools=terms.tools,
        connections=terms.connections,
        uses=task.uses,
        agent=task.agent,
        profile=task.requested_profile,
        reports_to=terms.reports_to,
        parent_id=task.id,
        batch=TEST_RUN_BATCH,
    )
