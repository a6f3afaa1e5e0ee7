"""What agents are told of tasks, in words that can be passed on as they are."""

from collections.abc import Sequence

from backburner.actions.create import WorkReport
from backburner.actions.work.tasks import TaskListing
from backburner.core.conversation import Conversation, Notify, Status
from backburner.core.run import Run
from backburner.core.schedule import After
from backburner.core.schedule.describe import describe
from backburner.core.work import views
from backburner.core.work.views import TaskStatus
from backburner.tools import wording

NO_TASKS = "There are no tasks."
NO_RUNS = "It has not run yet."
#: Of what a run found.
_LONGEST = 1_000
_TOLD = {
    Notify.ALWAYS: "The user is told what each run says.",
    Notify.ON_CHANGE: "The user is told what differs from the time before.",
    Notify.ON_FAILURE: "The user is told only of failures.",
    Notify.NEVER: "The user is told only of questions, and of failures that stop it.",
}


def name(work: Conversation) -> str:
    return f"{work.title!r} ({work.id})"


def of_made(done: WorkReport) -> str:
    """Confirm a task: what, when, the next times, where it reports."""
    work = done.work
    when = f"{when_of(done)}. {wording.next_times(work, done.zone, done.now)}".strip()
    parts = [when, _runs(work), _reports(work), _TOLD[work.notify]]
    told = " ".join(part for part in parts if part)
    if views.task_status(work) is TaskStatus.PROPOSED:
        return (
            f"Proposed: task {name(work)}, {told}"
            " Nothing runs before the owner has said yes; they have been asked."
        )
    if work.status is Status.WAITING_INPUT:
        return f"Task {name(work)}, {told} It goes on when its open question has been answered."
    if work.pause_reason is not None:
        return f"Task {name(work)}, {told} It is paused."
    return f"Task {name(work)}, {told} It is active."


def of_list(found: TaskListing) -> str:
    lines = [_line(task) for task in found.tasks]
    if found.cut:
        lines.append("There are more; ask for one status to see them.")
    return "\n".join(lines) or NO_TASKS


def of_history(work: Conversation, runs: Sequence[Run]) -> str:
    lines = [_of_run(run) for run in runs]
    return "\n".join([f"Task {name(work)}, run {work.run_count} times.", *(lines or [NO_RUNS])])


def when_of(done: WorkReport) -> str:
    timed = done.work.schedule
    if timed is None:
        return "no time set"
    if isinstance(timed, After) and done.after is not None:
        return describe(timed, zone=done.zone, other=repr(done.after))
    return describe(timed, zone=done.zone)


def _runs(work: Conversation) -> str:
    return "" if work.max_runs is None else f"It ends after {work.max_runs} runs."


def _reports(work: Conversation) -> str:
    places = [f"{place.channel} {place.target}" for place in work.reports_to]
    if work.parent_id is not None:
        places.insert(0, "the conversation it was made in")
    return f"It reports to {', '.join(places)}." if places else ""


def _line(task: WorkReport) -> str:
    """Tell of a task, but not what is asked or proposed in it: nobody has agreed to those words."""
    work, status = task.work, views.task_status(task.work)
    needs = ", waits for an answer" if work.status is Status.WAITING_INPUT else ""
    parts = [f"{name(work)}: {status}{needs}, {when_of(task)}."]
    parts.append(wording.next_times(work, task.zone, task.now))
    if work.last_run_at is not None:
        parts.append(f"Runs so far: {work.run_count}.")
    return " ".join(part for part in parts if part)


def _of_run(run: Run) -> str:
    began = f"{run.started_at:%Y-%m-%d %H:%M:%S}"
    if run.skipped is not None:
        gap = run.skipped.gap
        return f"{began} UTC: skipped {gap.count} times, {run.skipped.reason}."
    ended = "" if run.ended_at is None else f" to {run.ended_at:%H:%M:%S}"
    parts = [f"{began}{ended} UTC: {run.kind} {run.status}, {run.tokens} tokens."]
    if run.failure is not None:
        parts.append(f"Error ({run.failure.kind}): {run.failure.message[:_LONGEST]}")
    if run.result is not None:
        parts.append(f"Result: {run.result[:_LONGEST]}")
    return " ".join(parts)
