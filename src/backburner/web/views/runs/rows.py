"""Runs in lists: what runs now and why others wait, and what ran last."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backburner.actions.work.run_pages import ListedRun
from backburner.core.content.excerpt import make_excerpt
from backburner.core.run import RunKind, RunStatus
from backburner.core.work.activity import Activity
from backburner.web.display import Display, format_duration, format_money
from backburner.web.rendering import load_words
from backburner.web.views.tool_line import describe_call

_SIGNS = {
    RunStatus.RUNNING: "working",
    RunStatus.QUEUED: "paused",
    RunStatus.SUCCESS: "done",
    RunStatus.FAILURE: "failed",
    RunStatus.SKIPPED: "rest",
    RunStatus.CANCELLED: "rest",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """A run in a list."""

    id: str
    conversation_id: str
    title: str
    sign: str
    #: In a word, for screen readers.
    status: str
    #: What it does, why it waits, or what came of it.
    line: str
    tone: str
    moment: str
    full_time: str
    took: str
    cost: str
    started_by: str
    is_reply: bool


def show_line(listed: ListedRun, display: Display) -> RunLine:
    row, words = listed.row, load_words().running
    run = row.run
    started = load_words().chat.started
    at = run.ended_at or run.started_at
    waits_for_user = run.status is RunStatus.QUEUED and (run.waits_for_user or listed.is_asking)
    is_active = run.status in (RunStatus.RUNNING, RunStatus.QUEUED)
    return RunLine(
        id=run.id,
        conversation_id=run.conversation_id,
        title=row.title,
        sign="needs" if waits_for_user else _SIGNS[run.status],
        status=words.statuses[run.status.value],
        line=_describe(listed, display),
        tone="bad" if run.status is RunStatus.FAILURE else "ember" if waits_for_user else "",
        moment=_name_moment(run.started_at, display) if is_active else display.past_moment(at),
        full_time=display.full(at),
        took=format_duration(listed.worked) if listed.worked > timedelta() else "",
        cost=format_money(listed.spent.micros) if listed.spent.micros else "",
        started_by=started[run.started_by.value if run.started_by else "unknown"],
        is_reply=run.kind is RunKind.REPLY,
    )


def _name_moment(at: datetime, display: Display) -> str:
    return display.clock(at) if display.is_today(at) else display.moment(at)


def show_lines(runs: Sequence[ListedRun], display: Display) -> Sequence[RunLine]:
    return [show_line(one, display) for one in runs]


def _describe(listed: ListedRun, display: Display) -> str:
    row, words = listed.row, load_words().running
    run, running = row.run, row.running
    match run.status:
        case RunStatus.RUNNING:
            if listed.progress is not None:
                return listed.progress.text
            calls = running is not None and running.activity is Activity.CALLING
            if running is None or running.call is None or not calls:
                return str(words.thinks)
            return describe_call(running.call, display.now)
        case RunStatus.QUEUED:
            waits = listed.waits_for or ""
            if row.resumes_at is not None and row.resumes_at > display.now:
                return f"{waits} {words.goes_on.format(time=display.until(row.resumes_at))}"
            return waits
        case RunStatus.FAILURE:
            return str(words.failed) if run.failure is None else run.failure.sentence
        case RunStatus.SKIPPED:
            why = "" if run.skipped is None else run.skipped.in_words
            return str(words.skipped.format(reason=why))
        case RunStatus.CANCELLED:
            return str(words.stopped)
    if run.kind is RunKind.REPLY:
        return str(words.replied)
    return make_excerpt(run.result or "") or str(words.quiet)
