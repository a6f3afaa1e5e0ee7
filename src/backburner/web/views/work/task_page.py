"""The page of a task: charts of its last runs, its history, and what it may do and spend."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backburner.actions.work.run_pages import MAX_MEASURED_RUNS, ConversationStats, PastRun
from backburner.core.allowance import AllowanceState
from backburner.core.content.excerpt import make_excerpt
from backburner.core.conversation import Conversation, PauseReason
from backburner.core.run import Run, RunKind, RunStatus
from backburner.core.transitions import TEST_RUN_BATCH
from backburner.core.work.estimate import Estimate
from backburner.core.work.run_facts import RunMeasure, describe_outcome, shorten
from backburner.core.work.views import JobStatus, JobView
from backburner.ports import ConversationRow
from backburner.web.display import Display, format_count, format_duration, format_money
from backburner.web.rendering import count, load_words
from backburner.web.views.charts import Chart
from backburner.web.views.conversation_state import describe_work
from backburner.web.views.question import QuestionCard, show_question
from backburner.web.views.run_charts import draw_runs

#: After that, the outcome of a test run is only among the jobs.
TRIED_LATELY = timedelta(days=1)
_ENDED = (RunStatus.SUCCESS, RunStatus.FAILURE)
_BURNERS = {
    RunStatus.SUCCESS: "done",
    RunStatus.FAILURE: "failed",
    RunStatus.RUNNING: "working",
    RunStatus.QUEUED: "waits",
    RunStatus.CANCELLED: "paused",
    RunStatus.SKIPPED: "rest",
}


@dataclass(frozen=True, slots=True)
class ShownTrouble:
    """The reason why work fails, and what becomes of it."""

    text: str
    what_next: str
    run_id: str


@dataclass(frozen=True, slots=True)
class ShownSuccess:
    text: str
    tone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRun:
    id: str
    burner: str
    at: datetime
    when: str
    outcome: str
    tone: str
    started_by: str
    took: str
    cost: str
    #: A slot without a run has no page.
    has_page: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAllowance:
    text: str
    #: Of 100.
    part: int | None
    #: It is that of the conversation above.
    is_shared: bool
    estimate: str
    #: What the field begins with.
    limit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTestRun:
    id: str
    doing: str
    questions: Sequence[QuestionCard]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTried:
    """A test run that has ended."""

    id: str
    text: str
    when: str
    is_failed: bool


def show_charts(
    stats: ConversationStats, display: Display, *, run_limit: int | None
) -> Sequence[Chart]:
    """Draw the last runs; `run_limit` is what one may cost, in micros."""
    return list(draw_runs(_list_ended(stats), display, run_limit=run_limit))


def _list_ended(stats: ConversationStats) -> Sequence[RunMeasure]:
    """Leave out replies: they are no runs of the task."""
    return [
        one for one in stats.runs if one.run.status in _ENDED and one.run.kind is RunKind.BACKGROUND
    ]


def describe_success(stats: ConversationStats) -> ShownSuccess | None:
    """Say how many of the last runs went well."""
    words = load_words().tasks
    ended = _list_ended(stats)
    number, good = len(ended), sum(one.run.status is RunStatus.SUCCESS for one in ended)
    if not number:
        return None
    if not good:
        return ShownSuccess(count(words.none_well, number), "bad")
    text = count(words.gone_well, number, good=good)
    if len(stats.runs) >= MAX_MEASURED_RUNS:
        text = words.gone_well_last.format(good=good, number=number)
    return ShownSuccess(text, "ok" if 2 * good > number else "")


def describe_trouble(
    conversation: Conversation, stats: ConversationStats, display: Display
) -> ShownTrouble | None:
    """Say why the last run failed, what to do, and when it tries again; None: it did not fail."""
    ended = _list_ended(stats)
    last = ended[-1].run if ended else None
    if last is None or last.status is not RunStatus.FAILURE or not conversation.failures:
        return None
    words, outcome = load_words().tasks, describe_outcome(last, (), None)
    what_next = ""
    if conversation.pause_reason is PauseReason.FAILURES:
        what_next = count(words.trouble_paused, conversation.failures)
    elif conversation.next_run_at is not None and conversation.pause_reason is None:
        what_next = words.trouble_next.format(time=display.moment(conversation.next_run_at))
    text = words.trouble.format(reason=outcome.text)
    return ShownTrouble(
        text, " ".join(one for one in (outcome.what_to_do, what_next) if one), last.id
    )


def show_past_run(past: PastRun, display: Display) -> TaskRun:
    run = past.run
    at = run.skipped.gap.last_at if run.skipped else run.started_at
    words = load_words().tasks
    is_over = run.ended_at is not None and run.skipped is None
    return TaskRun(
        id=run.id,
        burner=_BURNERS[run.status],
        at=at,
        when=display.past_moment(at),
        outcome=_describe_outcome(past),
        tone={RunStatus.SKIPPED: "skipped", RunStatus.FAILURE: "bad"}.get(run.status, ""),
        started_by=words.started["schedule" if run.skipped else run.started_by or "unknown"],
        took=format_duration(past.worked) if is_over else "",
        cost=_describe_cost(past),
        has_page=run.skipped is None,
    )


def _describe_outcome(past: PastRun) -> str:
    run, words = past.run, load_words().tasks
    match run.status:
        case RunStatus.SKIPPED:
            reason = "" if run.skipped is None else run.skipped.in_words
            return str(words.skipped.format(reason=reason))
        case RunStatus.RUNNING:
            return past.doing or str(words.working)
        case RunStatus.QUEUED:
            return past.doing or str(words.waits)
        case RunStatus.CANCELLED:
            return str(words.stopped)
        case RunStatus.FAILURE:
            return str(words.failed) if run.failure is None else shorten(run.failure.sentence)
        case _:
            return past.message or _describe_quiet(run, is_quiet=past.is_quiet)


def _describe_quiet(run: Run, *, is_quiet: bool) -> str:
    words, result = load_words().tasks, shorten(run.result or "")
    # Plain data is for comparing, a sentence is for people.
    if " " in result and not result.startswith(("{", "[")):
        return result
    return str(words.nothing_to_report if is_quiet else words.went_well)


def _describe_cost(past: PastRun) -> str:
    if past.spent.micros:
        return format_money(past.spent.micros)
    if past.spent.tokens:
        return f"{format_count(past.spent.tokens)} tokens"
    return ""


def show_allowance(
    stats: ConversationStats, cost: Estimate | None, conversation: Conversation
) -> ShownAllowance:
    words, state = load_words().tasks, stats.state
    limit, spent = state.allowance.micros, format_money(state.spent.micros)
    part = None
    text = words.no_limit.format(spent=spent)
    if limit is not None:
        part = min(round(100 * state.spent.micros / limit), 100) if limit else 100
        text = words.of_limit.format(spent=spent, limit=format_money(limit))
    return ShownAllowance(
        text=text,
        part=part,
        is_shared=stats.root_id != conversation.id,
        estimate=_describe_estimate(cost),
        limit=_write_limit(state),
    )


def _write_limit(state: AllowanceState) -> str:
    micros, tokens = state.allowance.micros, state.allowance.tokens
    money = [] if micros is None else [f"${micros / 1_000_000:g}"]
    return ", ".join([*money, *([] if tokens is None else [f"{tokens} tokens"])])


def _describe_estimate(cost: Estimate | None) -> str:
    words = load_words().tasks
    if cost is None or not cost.priced or not cost.per_run.micros:
        return ""
    run = format_money(cost.per_run.micros)
    month = cost.per_month
    if month is None or cost.runs_per_month == 1:
        return str(words.estimate_run.format(run=run))
    return str(words.estimate.format(run=run, month=format_money(month.micros)))


def find_test_run(row: ConversationRow, display: Display) -> ShownTestRun | None:
    """Find the test run that is at work, or asks about all that it would have done."""
    for child in row.children.open:
        job = child.conversation
        if job.batch == TEST_RUN_BATCH:
            cards = [show_question(one, job.id, job.title, display) for one in job.questions]
            return ShownTestRun(id=job.id, doing=describe_work(child), questions=cards)
    return None


def show_tried(job: JobView | None, display: Display) -> ShownTried | None:
    """Show what came of the last test run; None: there was none lately, or it is open."""
    if job is None or job.completed_at is None or display.now - job.completed_at > TRIED_LATELY:
        return None
    words, is_failed = load_words().tasks, job.status is JobStatus.ERROR
    if not is_failed and job.status is not JobStatus.COMPLETED:
        return None
    text = make_excerpt((job.error if is_failed else job.result) or "")
    return ShownTried(
        id=job.id,
        text=text or str(words.failed if is_failed else words.nothing_to_report),
        when=display.past_moment(job.completed_at),
        is_failed=is_failed,
    )


def list_told(conversation: Conversation, notify: Mapping[str, str]) -> Sequence[tuple[str, str]]:
    """List where a task tells its user, and when."""
    words = load_words().tasks
    when = notify[conversation.notify]
    places = [f"{place.channel} {place.target}" for place in conversation.reports_to]
    return [(words.here, when), *((place, when) for place in places)]
