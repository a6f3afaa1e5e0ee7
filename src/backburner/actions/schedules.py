"""When work is to be done, as people say it: in words or in full, by the clock where they live."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from backburner.actions import active_limit, chain, lookup
from backburner.actions.deps import Deps
from backburner.core import schedule
from backburner.core.conversation import Conversation
from backburner.core.errors import BadRequest, BadSchedule
from backburner.core.ids import ConversationId, UserId
from backburner.core.schedule import After, AfterCondition, Immediate, Interval, Schedule
from backburner.core.schedule.phrases import parse_duration, parse_schedule
from backburner.core.schedule.serialize import from_json
from backburner.core.transitions import Step
from backburner.core.transitions import set_schedule as give_schedule
from backburner.core.validation import check_json
from backburner.core.work import views
from backburner.core.work.views import TaskKind
from backburner.ports import Tx

#: A schedule is a few words; only an event's settings may be more.
MAX_SCHEDULE_BYTES = 8_000
_HINT = "Give one of `when`, `interval`, `after` and `schedule`."


@dataclass(frozen=True, slots=True)
class Timing:
    """One of these; without any, work that is said to be of one time is done at once."""

    words: str | None = None
    structured: Mapping[str, Any] | None = None
    #: A length of time, such as `30m`.
    interval: str | None = None
    #: What it comes after: a name or an id.
    after: str | None = None
    on: AfterCondition = AfterCondition.SUCCESS
    #: What kind of task it is meant to be.
    kind: TaskKind | None = None

    @property
    def is_given(self) -> bool:
        given = (self.words, self.structured, self.interval, self.after)
        return any(one is not None for one in given)


@dataclass(frozen=True, slots=True)
class Preview:
    schedule: Schedule
    zone: str
    times: tuple[datetime, ...]


async def preview(deps: Deps, user: UserId, timing: Timing) -> Preview:
    """Say what a schedule would mean, and change nothing."""

    def work(tx: Tx) -> Preview:
        found = read(tx, user, timing)
        times = schedule.upcoming(found, now=tx.now)
        return Preview(found, tx.users.load(user).zone, times)

    return await deps.store.transact(work)


async def set_schedule(
    deps: Deps,
    user: UserId,
    conversation_id: ConversationId,
    timing: Timing,
    *,
    what: str | None = None,
) -> Conversation:
    """Give a conversation work, or the work it has another time; `what` says what is to be done."""

    def transition(found: Conversation, tx: Tx) -> Step:
        state = found.state
        if what is not None:
            if not what.strip():
                raise BadRequest("There is nothing to do.", hint="Say what is to be done.")
            state = replace(state, context={**state.context, "prompt": what})
        timed = read(tx, user, timing, of=conversation_id)
        return give_schedule(found, timed, now=tx.now, state=state)

    return await active_limit.change(deps, user, conversation_id, transition)


def read(tx: Tx, user: UserId, timing: Timing, *, of: ConversationId | None = None) -> Schedule:
    """Read when work is to be done; `of` is the conversation whose it is, if that is there."""
    found = _read(tx, user, timing)
    if isinstance(found, After):
        found = chain.resolve_after(tx, user, found, conversation_id=of)
    kind = views.task_kind(found)
    if timing.kind is not None and timing.kind is not kind:
        raise BadSchedule(
            f"A task of kind {timing.kind} was asked for, and that makes one of kind {kind}.",
            hint="Give a time that fits, or leave the kind out.",
        )
    return found


def _read(tx: Tx, user: UserId, timing: Timing) -> Schedule:
    given = (timing.words, timing.structured, timing.interval, timing.after)
    if sum(one is not None for one in given) > 1:
        raise BadSchedule("The time is said twice.", hint=_HINT)
    if timing.structured is not None:
        check_json("The schedule", dict(timing.structured), limit=MAX_SCHEDULE_BYTES)
        found = from_json(dict(timing.structured))
        schedule.check_schedule(found, now=tx.now)
        return found
    if timing.interval is not None:
        every = parse_duration(timing.interval.strip().removeprefix("every "))
        interval = Interval(every, anchor=tx.now)
        schedule.check_schedule(interval, now=tx.now)
        return interval
    if timing.after is not None:
        return After(lookup.find(tx, user, timing.after).id, timing.on)
    if timing.words is None and timing.kind is TaskKind.ONESHOT:
        return Immediate()
    if timing.words is None:
        raise BadSchedule("Say when.", hint=_HINT)
    return parse_schedule(timing.words, zone=tx.users.load(user).zone, now=tx.now)
