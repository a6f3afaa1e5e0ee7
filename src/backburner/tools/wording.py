"""What agents are told of background work, in words that can be passed on as they are."""

from collections.abc import Sequence
from datetime import datetime
from itertools import islice

from backburner.actions.create import WorkReport
from backburner.actions.work.conversation_work import WorkList
from backburner.core import schedule
from backburner.core.conversation import Conversation, Status
from backburner.core.ids import ConversationId
from backburner.core.schedule.describe import describe, say_times
from backburner.core.work import views
from backburner.core.work.views import TaskStatus

NO_WORK = "There is no background work here."
#: Next times that are named.
_SOME = 3
#: Of what somebody wrote.
_LONGEST = 300


def of_arranged(done: WorkReport, *, here: ConversationId) -> str:
    work = done.work
    when = f"{_when(work, done.zone)}. {next_times(work, done.zone, done.now)}".strip()
    name = f"{work.title!r} ({work.id})"
    if views.task_status(work) is TaskStatus.PROPOSED:
        return (
            f"Proposed as {name}, {when}"
            " Nothing runs before the owner has said yes; they have been asked."
        )
    if work.id == here:
        told = f"This conversation now works on it, {when}"
    else:
        told = f"A task of its own, {name}, works on it and reports here, {when}"
    if work.status is Status.WAITING_INPUT:
        return f"{told} It begins when the open question has been answered."
    return f"{told} It is active."


def of_stopped(stopped: Sequence[Conversation]) -> str:
    return f"Stopped: {'; '.join(_what(work) for work in stopped)}."


def of_works(works: WorkList) -> str:
    lines = []
    if works.own is not None:
        lines.append(f"This conversation: {_line(works.own, works)}")
    lines += [
        f"Task {child.title!r} ({child.id}): {_line(child, works)}" for child in works.children
    ]
    return "\n".join(lines) or NO_WORK


def _line(work: Conversation, works: WorkList) -> str:
    parts = [f"{_what(work)}, {_when(work, works.zone)}.", f"{_state(work)}."]
    return " ".join([*parts, next_times(work, works.zone, works.now)]).strip()


def _what(work: Conversation) -> str:
    text = " ".join(str(work.state.context.get("prompt", "")).split()) or work.title
    return text.rstrip(".") if len(text) <= _LONGEST else f"{text[:_LONGEST]} […]"


def _when(work: Conversation, zone: str) -> str:
    return "no time set" if work.schedule is None else describe(work.schedule, zone=zone)


def _state(work: Conversation) -> str:
    shown = work.pending_question
    if shown is not None:
        return f"Waits for an answer to: {shown.prompt[:_LONGEST]}".rstrip(".?!")
    status = views.task_status(work)
    named = {TaskStatus.PAUSED: "Paused", TaskStatus.FAILED: "Stopped after failures"}
    return "Active" if status is None else named.get(status, "Active")


def next_times(work: Conversation, zone: str, now: datetime) -> str:
    """Name the next times of what comes back; a single one was named already."""
    timed, first = work.schedule, work.next_run_at
    if timed is None or first is None or not schedule.is_recurring(timed):
        return ""
    times = (max(first, now), *islice(schedule.slots(timed, after=first), _SOME - 1))
    return f"Next: {say_times(times, zone=zone)}."
