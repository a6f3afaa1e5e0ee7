"""What is said of jobs, a line for each; words of theirs are left to those who fence them."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from backburner.core.ids import ConversationId
from backburner.core.work.views import JobStatus, JobView

#: Of what somebody wrote.
_LONGEST = 300


def line(job: JobView) -> str:
    """Say how a job stands."""
    parts = [f"{job.id} {job.description!r}: {_standing(job)}"]
    if not job.is_settled:
        parts.append(f"{_progress(job)}, last heard of at {_time(job.updated_at)}")
    if job.resume_count:
        parts.append(f"resumed {_count(job.resume_count, 'time')} so far")
    return f"{', '.join(parts)}."


def summary(
    jobs: Sequence[JobView],
    *,
    gone: Collection[ConversationId] = (),
    told: Collection[ConversationId] | None = None,
) -> str:
    """Say how several jobs stand; `told` are those whose results are shown beside it."""
    settled = sum(job.is_settled for job in jobs)
    lines = [f"{settled} of {len(jobs)} have settled."]
    lines += [f"- {line(job)}{_where(job, told)}" for job in jobs]
    lines += [f"- {which}: it is no longer there." for which in gone]
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


def _where(job: JobView, told: Collection[ConversationId] | None) -> str:
    has_result = job.status in (JobStatus.COMPLETED, JobStatus.ERROR)
    if told is None or not has_result:
        return ""
    return "" if job.id in told else " background_output gives its result."


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]} […]"
