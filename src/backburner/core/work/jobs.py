"""Jobs: limits on their number and depth, whether they have settled, and their description."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from backburner.core.conversation import Conversation, Kind, Status
from backburner.core.errors import Conflict, LimitReached
from backburner.core.ids import ConversationId
from backburner.core.outcome import Complete, format_result
from backburner.core.work.views import DEFAULT_RESULT, JobStatus, JobView

#: Below one root conversation, on all levels together.
MAX_OPEN_JOBS = 64
#: A job may start jobs, but those may not start more.
MAX_JOB_DEPTH = 2
MAX_BATCH_CHARS = 100
_MAX_QUESTION_CHARS = 300


def is_settled(job: Conversation) -> bool:
    """Return whether it has ended, is paused, or waits for its user."""
    return job.status is not Status.BACKGROUND


def check_new_jobs(ancestry: Sequence[Conversation], *, open_jobs: int, new_jobs: int = 1) -> None:
    """Refuse jobs that are too deep or too many; `ancestry` runs from the caller to the root."""
    if ancestry[0].status is Status.ARCHIVED:
        raise Conflict("This conversation is archived.", hint="Reopen it first.")
    if sum(ancestor.kind is Kind.JOB for ancestor in ancestry) >= MAX_JOB_DEPTH:
        raise LimitReached(
            "A job that was started by a job cannot start jobs.", hint="Do the work here."
        )
    if open_jobs + new_jobs > MAX_OPEN_JOBS:
        raise LimitReached(
            f"Limit reached: {MAX_OPEN_JOBS} open jobs; {open_jobs} are open now.",
            hint="Wait for some of them, or cancel some.",
        )


def result_text(outcome: Complete) -> str:
    """Combine the message of a job and its result, if it has one."""
    result = "" if outcome.result is None else format_result(outcome.result)
    if not result.strip():
        return outcome.message or DEFAULT_RESULT
    return result if outcome.message is None else f"{outcome.message}\n\nResult: {result}"


def describe_job(job: JobView) -> str:
    """Describe the status of a job, without its result: callers quote that as outside text."""
    parts = [f"{job.id} {job.description!r}: {_status(job)}"]
    if not job.is_settled:
        parts.append(f"{_progress(job)}, last activity at {_time(job.updated_at)}")
    if job.resume_count:
        parts.append(f"resumed {_count(job.resume_count, 'time')}")
    return f"{', '.join(parts)}."


def summarize_jobs(
    jobs: Sequence[JobView],
    *,
    missing: Collection[ConversationId] = (),
    shown: Collection[ConversationId] | None = None,
) -> str:
    """Describe the status of several jobs; `shown` are those whose results are shown with it."""
    settled = sum(job.is_settled for job in jobs)
    lines = [f"{settled} of {len(jobs)} have settled."]
    lines += [f"- {describe_job(job)}{_result_hint(job, shown)}" for job in jobs]
    lines += [f"- {job_id}: no longer exists." for job_id in missing]
    return "\n".join(lines)


def _status(job: JobView) -> str:
    if job.question is not None:
        return f"{job.status}, waits for the user's answer to: {_truncate(job.question)}"
    if job.waits_for is not None:
        return f"{job.status}, waits for the user: {job.waits_for.rstrip('.')}"
    if job.paused:
        return f"{job.status}, but paused"
    if job.completed_at is None:
        return job.status.value
    return f"{job.status} at {_time(job.completed_at)}"


def _progress(job: JobView) -> str:
    calls = _count(job.calls, "tool call")
    return f"{calls} (last: {', '.join(job.recent_tools)})" if job.recent_tools else calls


def _result_hint(job: JobView, shown: Collection[ConversationId] | None) -> str:
    has_result = job.status in (JobStatus.COMPLETED, JobStatus.ERROR)
    if shown is None or not has_result:
        return ""
    return "" if job.id in shown else " background_output returns its result."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _truncate(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _MAX_QUESTION_CHARS else f"{plain[:_MAX_QUESTION_CHARS]} […]"
