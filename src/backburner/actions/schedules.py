"""Schedules as users give them: as a phrase, an interval or JSON, in their time zone."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from backburner.actions import active_limit, after_schedules, lookup
from backburner.actions.deps import Deps
from backburner.core import schedule, transitions
from backburner.core.conversation import Conversation
from backburner.core.errors import BadRequest, BadSchedule
from backburner.core.ids import ConversationId, UserId
from backburner.core.schedule import (
    After,
    AfterCondition,
    CatchUp,
    Cron,
    Immediate,
    Interval,
    Schedule,
)
from backburner.core.schedule.cautions import find_cautions
from backburner.core.schedule.phrases import parse_duration, parse_schedule
from backburner.core.schedule.serialize import from_json
from backburner.core.transitions import Step
from backburner.core.validation import check_json
from backburner.core.work import views
from backburner.core.work.views import TaskKind
from backburner.ports import Tx

#: Only the settings of an event schedule may need this much.
MAX_SCHEDULE_BYTES = 8_000
_HINT = "Give one of `when`, `interval`, `after` and `schedule`."


@dataclass(frozen=True, slots=True)
class Timing:
    """One of `phrase`, `structured`, `interval` and `after`; a one-shot task may leave all out."""

    phrase: str | None = None
    structured: Mapping[str, Any] | None = None
    #: A duration, such as `30m`.
    interval: str | None = None
    #: Name or id of the task to run after.
    after: str | None = None
    on: AfterCondition = AfterCondition.SUCCESS
    #: The expected kind of task.
    kind: TaskKind | None = None
    #: Alone, it changes nothing else of a schedule; None: as before.
    catch_up: CatchUp | None = None

    @property
    def is_given(self) -> bool:
        return self.count > 0 or self.catch_up is not None

    @property
    def count(self) -> int:
        values = (self.phrase, self.structured, self.interval, self.after)
        return sum(value is not None for value in values)


@dataclass(frozen=True, slots=True)
class SchedulePreview:
    schedule: Schedule
    zone: str
    times: tuple[datetime, ...]
    #: What may not be meant.
    warnings: Sequence[str]


async def preview(deps: Deps, user: UserId, timing: Timing) -> SchedulePreview:
    def work(tx: Tx) -> SchedulePreview:
        resolved = resolve(tx, user, timing)
        times = schedule.upcoming(resolved, now=tx.now)
        zone = tx.users.load(user).zone
        least = deps.limits.min_interval if deps.can_be_injected("") else timedelta()
        warnings = find_cautions(resolved, now=tx.now, zone=zone, least=least)
        return SchedulePreview(resolved, zone, times, warnings)

    # Not as a read: what it would come after is locked.
    return await deps.store.transact(work)


async def set_schedule(
    deps: Deps,
    user: UserId,
    conversation_id: ConversationId,
    timing: Timing,
    *,
    prompt: str | None = None,
    check_instructions: Callable[[Tx, Conversation], None] | None = None,
) -> Conversation:
    """Schedule work in a conversation, or reschedule it; `prompt` replaces its prompt.

    `check_instructions` refuses a caller who may not tell it what to do.
    """

    def transition(conversation: Conversation, tx: Tx) -> Step:
        state = conversation.state
        if prompt is not None:
            if not prompt.strip():
                raise BadRequest("The prompt is empty.", hint="Describe the work.")
            state = replace(state, context={**state.context, "prompt": prompt})
        resolved = reschedule(tx, conversation, timing)
        step = transitions.set_schedule(conversation, resolved, now=tx.now, state=state)
        # A changed proposal is asked about anew in any case.
        if check_instructions is not None and state != conversation.state and not step.asked:
            check_instructions(tx, conversation)
        return step

    return await active_limit.change(deps, user, conversation_id, transition)


def reschedule(tx: Tx, conversation: Conversation, timing: Timing) -> Schedule:
    """Build another schedule of a conversation; words say nothing of missed times."""
    before, timed = conversation.schedule, Cron | Interval
    if not timing.count and timing.catch_up is not None and before is not None:
        return _catch_up(before, timing.catch_up)
    resolved = resolve(tx, conversation.user_id, timing, conversation.id)
    if timing.structured is not None or timing.catch_up is not None:
        return resolved
    if isinstance(before, timed) and isinstance(resolved, timed):
        return replace(resolved, catch_up=before.catch_up)
    return resolved


def resolve(
    tx: Tx, user: UserId, timing: Timing, conversation_id: ConversationId | None = None
) -> Schedule:
    """Build the schedule of a conversation, which may be new, and check it."""
    parsed = _parse(tx, user, timing)
    if isinstance(parsed, After):
        parsed = after_schedules.resolve_after(tx, user, parsed, conversation_id=conversation_id)
    kind = views.task_kind(parsed)
    if timing.kind is not None and timing.kind is not kind:
        raise BadSchedule(
            f"This schedule makes a task of kind {kind}, not {timing.kind}.",
            hint="Give a schedule of that kind, or leave the kind out.",
        )
    return parsed if timing.catch_up is None else _catch_up(parsed, timing.catch_up)


def _catch_up(before: Schedule, catch_up: CatchUp) -> Schedule:
    if not isinstance(before, Cron | Interval):
        raise BadSchedule(
            "Only work that repeats at times can miss some of them.",
            hint="Leave `catch_up` out, or give a time that repeats.",
        )
    return replace(before, catch_up=catch_up)


def _parse(tx: Tx, user: UserId, timing: Timing) -> Schedule:
    if timing.count > 1:
        raise BadSchedule("There is more than one schedule.", hint=_HINT)
    if timing.structured is not None:
        check_json("The schedule", dict(timing.structured), limit=MAX_SCHEDULE_BYTES)
        parsed = from_json(dict(timing.structured), zone=tx.users.load(user).zone)
        schedule.check_schedule(parsed, now=tx.now)
        schedule.check_event_source(parsed)
        return parsed
    if timing.interval is not None:
        every = parse_duration(timing.interval.strip().removeprefix("every "))
        interval = Interval(every, anchor=tx.now)
        schedule.check_schedule(interval, now=tx.now)
        return interval
    if timing.after is not None:
        return After(lookup.find(tx, user, timing.after).id, timing.on)
    if timing.phrase is None and timing.kind is TaskKind.ONESHOT:
        return Immediate()
    if timing.phrase is None:
        raise BadSchedule("The schedule is missing.", hint=_HINT)
    return parse_schedule(timing.phrase, zone=tx.users.load(user).zone, now=tx.now)
