"""Jobs as trees: what each does or came to, how long it took, what it cost, and its own jobs."""

from collections.abc import Sequence
from dataclasses import dataclass

from backburner.actions.work.job_trees import JobNode, JobTree
from backburner.core.conversation import Kind
from backburner.core.question import Question
from backburner.core.transitions import TEST_RUN_BATCH
from backburner.core.work.activity import Activity
from backburner.core.work.run_facts import shorten
from backburner.core.work.views import JobStatus, JobView
from backburner.ports import JobCounts
from backburner.web.display import Display, format_count, format_duration, format_money
from backburner.web.rendering import count, load_words
from backburner.web.views.conversation_state import describe_question
from backburner.web.views.tool_line import describe_call

_OPEN = (JobStatus.RUNNING, JobStatus.RESUMED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownJob:
    id: str
    title: str
    burner: str
    line: str
    tone: str
    #: Where the line leads: to what it asks.
    href: str
    #: How long it took, how many steps, and what it cost.
    facts: str
    counts: str
    children: Sequence["ShownJob"]
    more: int
    can_cancel: bool
    can_follow_up: bool
    can_remove: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTree:
    id: str
    title: str
    href: str
    counts: str
    #: How many of 100 are done.
    part: int
    jobs: Sequence[ShownJob]
    more: int


def show_tree(tree: JobTree, display: Display) -> ShownTree:
    parent, counts = tree.parent, tree.counts
    # Tasks have a page of their own; jobs below jobs are reached through their conversation.
    place = "t" if parent.kind is Kind.TASK else "c"
    done = counts.completed + counts.failed + counts.cancelled
    return ShownTree(
        id=parent.id,
        title=parent.title or load_words().common.untitled,
        href=f"/{place}/{parent.id}",
        counts=describe_counts(counts),
        part=round(100 * done / counts.total) if counts.total else 0,
        jobs=[show_job(node, display) for node in tree.children],
        more=counts.total - len(tree.children),
    )


def show_job(node: JobNode, display: Display) -> ShownJob:
    view = node.view
    burner, line, tone = describe_job(view, node.asked, node.waits_for)
    is_ended = view.status not in _OPEN
    return ShownJob(
        id=view.id,
        title=view.description or load_words().common.untitled,
        burner=burner,
        line=line,
        tone=tone,
        href="" if node.asked is None else f"/q/{node.asked.id}",
        facts=_describe_facts(node),
        counts=describe_counts(node.counts),
        children=[show_job(child, display) for child in node.children],
        more=node.counts.total - len(node.children),
        can_cancel=not is_ended,
        can_follow_up=view.status is JobStatus.COMPLETED and view.batch != TEST_RUN_BATCH,
        can_remove=is_ended,
    )


def describe_job(
    view: JobView, asked: Question | None = None, waits_for: str | None = None
) -> tuple[str, str, str]:
    """Return the drawing of the burner, a line of words, and their colour."""
    words = load_words().jobs
    if view.status is JobStatus.ERROR:
        reason = shorten(view.error or "") or words.no_reason
        return "failed", words.error.format(reason=reason), "bad"
    if view.status is JobStatus.COMPLETED:
        return "done", shorten(view.result or "") or words.completed, ""
    if view.status is JobStatus.CANCELLED:
        return "rest", words.was_cancelled, ""
    if asked is not None:
        return "needs", describe_question(asked), "ember"
    if view.needs_you:
        return "needs", words.asks.format(prompt=shorten(view.question or "")), "ember"
    if view.paused:
        return "paused", view.waits_for or words.paused, ""
    if view.running is None:
        return "waits", (waits_for or words.waits).removesuffix("."), ""
    return "working", _describe_work(view), "pilot"


def _describe_work(view: JobView) -> str:
    """Say what it reports, or which tool it uses; while it thinks, what it did before."""
    words, running = load_words().jobs, view.running
    if view.progress is not None:
        return view.progress.text
    if running is None or running.call is None:
        return str(words.working)
    said = describe_call(running.call, running.call.started_at)
    if running.activity is Activity.CALLING:
        return said
    return str(words.thinks_after.format(done=said))


def describe_counts(counts: JobCounts) -> str:
    """Say how many jobs are done: 2 of 5 done, one failed; empty: there are none."""
    if not counts.total:
        return ""
    words = load_words().jobs
    done: str = words.done.format(done=counts.completed, all=counts.total)
    failed, cancelled = count(words.failed, counts.failed), count(words.cancelled, counts.cancelled)
    return done + failed + cancelled


def _describe_facts(node: JobNode) -> str:
    view, parts = node.view, []
    parts.append(format_duration(node.elapsed))
    if view.calls:
        parts.append(count(load_words().jobs.calls, view.calls))
    if node.spent.micros:
        parts.append(format_money(node.spent.micros))
    elif node.spent.tokens:
        parts.append(f"{format_count(node.spent.tokens)} tokens")
    return " · ".join(parts)
