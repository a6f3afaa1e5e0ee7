"""Replies of the tools for background work and tasks, worded so that an agent can pass them on."""

from collections.abc import Sequence
from datetime import datetime
from itertools import islice

from backburner.actions.create import WorkReport
from backburner.actions.work.conversation_work import WorkList
from backburner.actions.work.tasks import TaskListing
from backburner.core import schedule
from backburner.core.conversation import Conversation, Notify, PauseReason, Status
from backburner.core.ids import ConversationId
from backburner.core.prompt import quote_outside
from backburner.core.run import Run
from backburner.core.schedule import After
from backburner.core.schedule.describe import describe, join_times
from backburner.core.work import views
from backburner.core.work.timeouts import describe_timeout
from backburner.core.work.views import TaskStatus

NO_WORK = "There is no background work here."
NO_TASKS = "There are no tasks."
NO_RUNS = "It has not run yet."
_NEXT_TIMES = 3
_MAX_PROMPT_CHARS = 300
_MAX_RESULT_CHARS = 1_000
_NOTIFICATIONS = {
    Notify.ALWAYS: "The user is notified of every result.",
    Notify.ON_CHANGE: "The user is notified of changed results.",
    Notify.ON_FAILURE: "The user is notified of failures only.",
    Notify.NEVER: "The user is notified only of questions and of failures that stop it.",
}
_PAUSES = {
    PauseReason.USER: "paused",
    PauseReason.FAILURES: "paused after repeated failures",
    PauseReason.CRASHES: "paused after repeated crashes",
    PauseReason.ALLOWANCE: "paused because an allowance is used up",
    PauseReason.CONNECTION_REMOVED: "paused because a connection that it uses was removed",
    PauseReason.SIGNED_OUT: "paused until a connection is signed in again",
}
_ASKED_TO_APPROVE = "Nothing runs before the owner approves it; they have been asked."


def describe_new_work(created: WorkReport, *, here: ConversationId) -> str:
    work = created.work
    schedule_text = "not scheduled"
    if work.schedule is not None:
        schedule_text = describe(work.schedule, zone=created.zone)
    when = f"{schedule_text}. {next_times(work, created.zone, created.now)}".strip()
    if views.task_status(work) is TaskStatus.PROPOSED:
        return f"Proposed as {task_name(work)}, {when} {_ASKED_TO_APPROVE}"
    if work.id == here:
        text = f"Scheduled as the work of this conversation, {when}"
    else:
        text = f"Scheduled as a separate task that reports here, {task_name(work)}, {when}"
    if work.status is Status.WAITING_INPUT:
        return f"{text} It starts when the open question has been answered."
    return f"{text} It is active."


def describe_change(report: WorkReport, done: str) -> str:
    """Return `done`, or that the owner is asked about the change."""
    if report.proposed is None:
        return done
    return (
        f"Only proposed, for {task_name(report.work)}: nothing changes before the owner says yes;"
        " they have been asked."
    )


def describe_stopped_work(stopped: Sequence[Conversation]) -> str:
    return f"Stopped: {'; '.join(_prompt(work) for work in stopped)}."


def describe_work(works: WorkList) -> str:
    lines = []
    if works.own is not None:
        lines.append(f"This conversation: {_work_line(works.own, works)}")
    lines += [f"Task {task_name(child)}: {_work_line(child, works)}" for child in works.children]
    return "\n".join(lines) or NO_WORK


def task_name(work: Conversation) -> str:
    return f"{work.title!r} ({work.id})"


def describe_task(task: WorkReport) -> str:
    """Describe a task: its schedule, the next times, and where it reports."""
    work = task.work
    when = f"{_task_schedule(task)}. {next_times(work, task.zone, task.now)}".strip()
    parts = [
        when,
        _run_limit(work),
        _timeout(work),
        "It continues after repeated failures." if views.continues_after_failures(work) else "",
        f"It uses {', '.join(work.connections)}." if work.connections else "",
        *task.warnings,
        _destinations(work),
        _NOTIFICATIONS[work.notify],
    ]
    text = " ".join(part for part in parts if part)
    if views.task_status(work) is TaskStatus.PROPOSED:
        return f"Proposed: task {task_name(work)}, {text} {_ASKED_TO_APPROVE}"
    if work.status is Status.WAITING_INPUT:
        return f"Task {task_name(work)}, {text} It continues when its open question is answered."
    if work.pause_reason is not None:
        return f"Task {task_name(work)}, {text} It is {_PAUSES[work.pause_reason]}."
    return f"Task {task_name(work)}, {text} It is active."


def describe_tasks(listing: TaskListing) -> str:
    lines = [_task_line(task) for task in listing.tasks]
    if listing.truncated:
        lines.append("There are more tasks; list one status to see them.")
    return "\n".join(lines) or NO_TASKS


def describe_history(work: Conversation, runs: Sequence[Run]) -> str:
    lines = [_run_line(run) for run in runs]
    return "\n".join(
        [f"Task {task_name(work)}, run {work.run_count} times.", *(lines or [NO_RUNS])]
    )


def next_times(work: Conversation, zone: str, now: datetime) -> str:
    """List the next times of recurring work; the schedule of one-time work names its time."""
    timed, first = work.schedule, work.next_run_at
    if timed is None or first is None or not schedule.is_recurring(timed):
        return ""
    times = (max(first, now), *islice(schedule.slots(timed, after=first), _NEXT_TIMES - 1))
    return f"Next: {join_times(times, zone=zone)}."


def _work_line(work: Conversation, works: WorkList) -> str:
    when = "not scheduled" if work.schedule is None else describe(work.schedule, zone=works.zone)
    parts = [f"{_prompt(work)}, {when}.", f"{_work_state(work)}."]
    return " ".join([*parts, next_times(work, works.zone, works.now)]).strip()


def _prompt(work: Conversation) -> str:
    text = " ".join(str(work.state.context.get("prompt", "")).split()) or work.title
    if len(text) <= _MAX_PROMPT_CHARS:
        return text.rstrip(".")
    return f"{text[:_MAX_PROMPT_CHARS]} […]"


def _work_state(work: Conversation) -> str:
    question = work.pending_question
    if question is not None:
        return f"Waits for an answer to: {question.prompt[:_MAX_PROMPT_CHARS]}".rstrip(".?!")
    if work.pause_reason is not None:
        return _PAUSES[work.pause_reason].capitalize()
    return "Active"


def _task_schedule(task: WorkReport) -> str:
    timed = task.work.schedule
    if timed is None:
        return "not scheduled"
    if isinstance(timed, After) and task.after is not None:
        return describe(timed, zone=task.zone, other=repr(task.after))
    return describe(timed, zone=task.zone)


def _run_limit(work: Conversation) -> str:
    return "" if work.max_runs is None else f"It ends after {work.max_runs} runs."


def _timeout(work: Conversation) -> str:
    timeout = work.run_timeout
    return "" if timeout is None else f"A run may take up to {describe_timeout(timeout)}."


def _destinations(work: Conversation) -> str:
    destinations = [f"{to.channel} {to.target}" for to in work.reports_to]
    if work.parent_id is not None:
        destinations.insert(0, "the conversation that created it")
    return f"It reports to {', '.join(destinations)}." if destinations else ""


def _task_line(task: WorkReport) -> str:
    # Without its question and prompt: text that nobody has approved must not reach other agents.
    work, status = task.work, views.task_status(task.work)
    needs = ", waits for an answer" if work.status is Status.WAITING_INPUT else ""
    reason = work.pause_reason if status is TaskStatus.PAUSED else None
    shown = status if reason is None else _PAUSES[reason]
    parts = [f"{task_name(work)}: {shown}{needs}, {_task_schedule(task)}."]
    parts.append(next_times(work, task.zone, task.now))
    if work.last_run_at is not None:
        parts.append(f"Runs so far: {work.run_count}.")
    return " ".join(part for part in parts if part)


def _run_line(run: Run) -> str:
    started = f"{run.started_at:%Y-%m-%d %H:%M:%S}"
    if run.skipped is not None:
        return f"{started} UTC: skipped: {run.skipped.in_words}."
    ended = "" if run.ended_at is None else f" to {run.ended_at:%H:%M:%S}"
    parts = [f"{started}{ended} UTC: {run.kind} {run.status}, {run.tokens} tokens."]
    if run.failure is not None:
        parts.append(f"Error ({run.failure.kind}): {run.failure.message[:_MAX_RESULT_CHARS]}")
    if run.result is not None:
        result = run.result[:_MAX_RESULT_CHARS]
        parts.append(f"Result: {quote_outside('run', result) if run.outside else result}")
    return " ".join(parts)
