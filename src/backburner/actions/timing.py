"""When work is to be done, as people say it: in words or in full, by the clock where they live."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from backburner.actions import background
from backburner.actions.deps import Deps
from backburner.actions.following import change
from backburner.core import routing, schedule, transitions
from backburner.core.conversation import Conversation
from backburner.core.errors import BadRequest
from backburner.core.ids import ConversationId, UserId, new_conversation_id
from backburner.core.phrases import parse_schedule
from backburner.core.schedule import After, Schedule
from backburner.core.schedule_json import from_json
from backburner.core.transitions import Brief, Step
from backburner.core.values import check_json
from backburner.ports import Tx

#: A schedule is a few words; only an event's settings may be more.
MOST_BYTES = 8_000


@dataclass(frozen=True, slots=True)
class Timing:
    """One of both."""

    words: str | None = None
    structured: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    schedule: Schedule
    zone: str
    times: tuple[datetime, ...]


async def preview(deps: Deps, user: UserId, timing: Timing) -> Preview:
    """Say what a schedule would mean, and change nothing."""

    def work(tx: Tx) -> Preview:
        read = _read(tx, user, timing)
        times = schedule.upcoming(read, now=tx.now)
        return Preview(read, tx.person(user).zone, times)

    return await deps.store.transact(work)


async def start(
    deps: Deps, user: UserId, timing: Timing, brief: Callable[[Schedule], Brief]
) -> Conversation:
    """Set up work of its own."""

    def work(tx: Tx) -> Conversation:
        asked = brief(_read(tx, user, timing))
        step = transitions.start_task(new_conversation_id(), user, asked, now=tx.now)
        task = routing.assign(step.conversation, deps.routes)
        tx.add(replace(step, conversation=task))
        return task

    return await deps.store.transact(work)


async def set_schedule(
    deps: Deps,
    user: UserId,
    which: ConversationId,
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
        read = _read(tx, user, timing)
        if isinstance(read, After) and read.conversation == which:
            raise BadRequest("A conversation cannot come after itself.", hint="Name another.")
        return transitions.set_schedule(found, read, now=tx.now, state=state)

    return await change(deps, user, which, transition)


async def clear_schedule(deps: Deps, user: UserId, which: ConversationId) -> Conversation:
    """Stop the work for good; the conversation stays."""
    return await background.cancel(deps, user, which)


def _read(tx: Tx, user: UserId, timing: Timing) -> Schedule:
    if timing.structured is not None:
        check_json("The schedule", dict(timing.structured), limit=MOST_BYTES)
        read = from_json(dict(timing.structured))
        schedule.check(read, now=tx.now)
    else:
        read = parse_schedule(timing.words or "", zone=tx.person(user).zone, now=tx.now)
    if isinstance(read, After):
        # One must not find out by this whether somebody else has such a conversation.
        tx.load(user, read.conversation)
    return read
