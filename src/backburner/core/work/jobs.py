"""Work that a conversation hands out: how much of it, how deep, and when it has settled."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from backburner.core.conversation import Conversation, Kind, Status
from backburner.core.errors import Conflict, LimitReached
from backburner.core.ids import ConversationId
from backburner.core.outcome import Complete
from backburner.core.validation import canonical_json
from backburner.core.work.views import DEFAULT_RESULT, JobStatus, JobView

#: Under one conversation that nothing handed out, all levels together.
MAX_OPEN_JOBS = 64
#: A job of a chat may hand out jobs, and those may not.
MAX_JOB_DEPTH = 2
MAX_BATCH_CHARS = 100
#: Of what somebody wrote.
_MAX_QUESTION_CHARS = 300


def is_settled(job: Conversation) -> bool:
    """See whether nothing more happens by itself: it has ended, stands still, or asks."""
    return job.status is not Status.BACKGROUND


def check_new_jobs(ancestry: Sequence[Conversation], *, open_jobs: int, new_jobs: int = 1) -> None:
    """Refuse jobs that would lie too deep, or be too many; `ancestry` begins with who asks."""
    if ancestry[0].status is Status.ARCHIVED:
        raise Conflict("This conversation is archived.", hint="Reopen it first.")
    if sum(one.kind is Kind.JOB for one in ancestry) >= MAX_JOB_DEPTH:
        raise LimitReached(
            "A job that was handed out by a job cannot hand out more.", hint="Do the work here."
        )
    if open_jobs + new_jobs > MAX_OPEN_JOBS:
        raise LimitReached(
            f"There are already {open_jobs} jobs under way here, and {MAX_OPEN_JOBS} is the limit.",
            hint="Wait for some of them with background_block, or stop some with"
            " background_cancel.",
        )


def result_text(outcome: Complete) -> str:
    """Put all that a job found into words: what it said, and the bare finding if there is one."""
    if outcome.result is None:
        return outcome.message or DEFAULT_RESULT
    found = canonical_json(outcome.result)
    return found if outcome.message is None else f"{outcome.message}\n\nResult: {found}"


def describe_job(job: JobView) -> str:
    """Say how a job stands."""
    parts = [f"{job.id} {job.description!r}: {_standing(job)}"]
    if not job.is_settled:
        parts.append(f"{_progress(job)}, last heard of at {_time(job.updated_at)}")
    if job.resume_count:
        parts.append(f"resumed {_count(job.resume_count, 'time')} so far")
    return f"{', '.join(parts)}."


def summarize_jobs(
    jobs: Sequence[JobView],
    *,
    missing: Collection[ConversationId] = (),
    shown: Collection[ConversationId] | None = None,
) -> str:
    """Say how several jobs stand; `shown` are those whose results are shown beside it."""
    settled = sum(job.is_settled for job in jobs)
    lines = [f"{settled} of {len(jobs)} have settled."]
    lines += [f"- {describe_job(job)}{_where(job, shown)}" for job in jobs]
    lines += [f"- {job_id}: it is no longer there." for job_id in missing]
    return "\n".join(lines)


def _standing(job: JobView) -> str:
    if job.question is not None:
        return f"{job.status}, waits for the user's answer to: {_short(job.question)}"
    if job.paused:
        return f"{job.status}, but it stands still"
    if job.completed_at is None:
        return job.status.value
    return f"{job.status} at {_time(job.completed_at)}"


def _progress(job: JobView) -> str:
    calls = _count(job.calls, "tool call")
    return f"{calls} (last: {', '.join(job.recent_tools)})" if job.recent_tools else calls


def _where(job: JobView, shown: Collection[ConversationId] | None) -> str:
    has_result = job.status in (JobStatus.COMPLETED, JobStatus.ERROR)
    if shown is None or not has_result:
        return ""
    return "" if job.id in shown else " background_output gives its result."


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _MAX_QUESTION_CHARS else f"{plain[:_MAX_QUESTION_CHARS]} […]"
