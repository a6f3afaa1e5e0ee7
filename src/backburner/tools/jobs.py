"""What an agent may do with work that it hands out to others."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from pydantic import Field

from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.work import jobs, wait
from backburner.actions.work.jobs import JobRequest, JobsChanged, JobSelection
from backburner.core import prompt
from backburner.core.conversation import MAX_TITLE_CHARS
from backburner.core.validation import canonical_json
from backburner.core.work.jobs import MAX_BATCH_CHARS, describe_job, summarize_jobs
from backburner.core.work.views import JobStatus, JobView
from backburner.ports import JobWait, Offer, ToolResult
from backburner.runs.retrying_store import with_retries
from backburner.tools.define import Arguments, define_tool

#: Of all results that one call gives, in characters; the gate lets no more through.
MAX_RESULTS_CHARS = 90_000
MAX_JOBS_LISTED = 100
MAX_JOB_WAIT_SECONDS = 24 * 60 * 60

_IDS = "Ids of jobs as background_task gave them; the first letters do if they fit one job only."
_BATCH = "The batch that background_task named."
NO_SUCH_JOBS = "There are no such jobs."
WAITING_FOR_JOBS = (
    "Not all of them have settled, so your run is put aside here and costs nothing. It goes on by"
    " itself with a summary once they have, when the user says something, or when the time is up."
    " End here."
)


class StartJob(Arguments):
    description: str = Field(
        min_length=1, max_length=MAX_TITLE_CHARS, description="A short name, for people."
    )
    prompt: str = Field(
        min_length=1,
        description="What is to be done, complete in itself: whoever does it knows nothing of this"
        " conversation. Say what the result is to look like.",
    )
    agent: str = Field(
        default="",
        description="The name of the profile that is to do it, if the user has named one.",
    )
    batch: str = Field(
        default="",
        max_length=MAX_BATCH_CHARS,
        description="A name for jobs that belong together. Left out, all that you start before your"
        " next answer are one batch.",
    )


class JobId(Arguments):
    task_id: str = Field(min_length=1, description="The id of a job, or how it begins.")


class WaitForJobs(Arguments):
    task_ids: list[str] = Field(min_length=1, max_length=jobs.MAX_JOBS_PER_CALL, description=_IDS)
    timeout: float = Field(
        default=60,
        ge=0,
        le=MAX_JOB_WAIT_SECONDS,
        description="How long to wait at most, in seconds.",
    )


class ResumeJob(Arguments):
    task_id: str = Field(min_length=1, description="The id of a completed job, or how it begins.")
    message: str = Field(min_length=1, description="What else is to be done, or to be answered.")


class JobSelector(Arguments):
    task_ids: list[str] = Field(default=[], max_length=jobs.MAX_JOBS_PER_CALL, description=_IDS)
    batch: str = Field(default="", description=_BATCH)


class ListJobs(Arguments):
    status: Literal["", "running", "completed", "error", "cancelled", "resumed"] = Field(
        default="", description="Only those that stand so."
    )
    batch: str = Field(default="", description=_BATCH)


def job_offers(deps: Deps, origin: Origin) -> Sequence[Offer]:
    """Offer what goes for jobs of a conversation."""
    tools = _Tools(deps, origin)
    return (
        define_tool("background_task", StartJob, tools.start, free=True),
        define_tool(
            "background_output", JobId, tools.output, free=True, read_only=True, outside=True
        ),
        define_tool(
            "background_block", WaitForJobs, tools.block, free=True, read_only=True, outside=True
        ),
        define_tool("background_resume", ResumeJob, tools.resume, free=True),
        define_tool("background_cancel", JobSelector, tools.cancel, free=True),
        define_tool("background_list", ListJobs, tools.list, free=True, read_only=True),
        define_tool("background_clear", JobSelector, tools.clear, free=True),
    )


class _Tools:
    def __init__(self, deps: Deps, origin: Origin) -> None:
        self._deps = with_retries(deps) if origin.turn else deps
        self._origin = origin

    async def start(self, asked: StartJob) -> str:
        """Start a job that works in the background while you go on; returns at once with its id.

        Use it for work that takes a while and can be done without you, several at a time. Its
        result is told to this conversation when it is there, so do not ask again and again. A job
        can do what this conversation may do, and no more.
        """
        wish = JobRequest(
            description=asked.description, prompt=asked.prompt, agent=asked.agent.strip() or None
        )
        (job,) = await jobs.start(self._deps, self._origin, [wish], batch=asked.batch)
        return (
            f"Started {job.id} {job.description!r}, batch {job.batch}: {job.status}."
            " Its result will be told here; background_block waits for it."
        )

    async def output(self, asked: JobId) -> ToolResult:
        """See how a job stands, and its result if there is one; never waits.

        Of a job at work it tells how many tools it has called, the last ones, and when it was last
        heard of.
        """
        found = await jobs.fetch(self._deps, self._origin, [asked.task_id])
        if found.unknown:
            raise jobs.unknown_jobs(found.unknown)
        return ToolResult(_in_full(found), reads=found.items)

    async def block(self, asked: WaitForJobs) -> ToolResult:
        """Wait until all of these jobs have ended, need the user or stand still, or the time is up.

        Gives a summary of all of them, with results. Use it when you cannot go on without them.
        After background_resume it waits for the new answer.
        """
        longest = timedelta(seconds=asked.timeout)
        if self._origin.turn is None:
            found = await wait.wait_here(self._deps, self._origin, asked.task_ids, longest)
            return ToolResult(_summary(found))
        known = await wait.wait_elsewhere(self._deps, self._origin, asked.task_ids, longest)
        if isinstance(known, JobWait):
            return ToolResult(WAITING_FOR_JOBS, waits=known)
        return ToolResult(_summary(known), reads=known.items)

    async def resume(self, asked: ResumeJob) -> str:
        """Ask a completed job for something more; it remembers what it did. Returns at once.

        Its answer is told here, as its result was.
        """
        job = await jobs.resume(self._deps, self._origin, asked.task_id, asked.message)
        return (
            f"{job.id} {job.description!r} works on it: {job.status}, for the"
            f" {ordinal(job.resume_count)} time. Its answer will be told here;"
            " background_block waits for it."
        )

    async def cancel(self, asked: JobSelector) -> str:
        """Stop jobs that are no longer needed: some by id, or a whole batch."""
        changed = await jobs.cancel(self._deps, self._origin, ids=asked.task_ids, batch=asked.batch)
        return _changes("Cancelled", changed, "Not at work any more")

    async def list(self, asked: ListJobs) -> str:
        """List the jobs of this conversation, newest first, without their results."""
        status = JobStatus(asked.status) if asked.status else None
        found = await jobs.look(self._deps, self._origin, status=status, batch=asked.batch)
        lines = [f"- {describe_job(job)}{_batch(job)}" for job in found.jobs[:MAX_JOBS_LISTED]]
        if len(found.jobs) > MAX_JOBS_LISTED:
            lines.append(f"There are {len(found.jobs) - MAX_JOBS_LISTED} older ones.")
        return "\n".join(lines) or NO_SUCH_JOBS

    async def clear(self, asked: JobSelector) -> str:
        """Remove jobs that have ended, with their results: some by id, a batch, or all of them."""
        changed = await jobs.clear(self._deps, self._origin, ids=asked.task_ids, batch=asked.batch)
        return _changes("Removed", changed, "Left, because they have not ended")


def _summary(found: JobSelection) -> str:
    parts = [summarize_jobs(found.jobs)] if found.jobs else []
    with_words = [job for job in found.jobs if job.result is not None or job.error is not None]
    room = MAX_RESULTS_CHARS // max(1, len(with_words))
    parts += [f"{job.id}:\n{_words(job, room)}" for job in with_words]
    return "\n".join([*parts, *_unknown(found.unknown)])


def _in_full(found: JobSelection) -> str:
    (job,) = found.jobs
    words = _words(job, MAX_RESULTS_CHARS)
    return f"{describe_job(job)}\n{words}" if words else describe_job(job)


def _words(job: JobView, room: int) -> str:
    """Give what a job said in the end, as the words of somebody else."""
    text = job.error if job.result is None else job.result
    if text is None:
        return ""
    if job.data is not None and job.result is not None:
        text = f"{text}\n\nResult: {canonical_json(job.data)}"
    return prompt.quote_outside("job", prompt.truncate(text, room))


def _changes(what: str, changed: JobsChanged, left: str) -> str:
    lines = []
    if changed.done:
        lines.append(f"{what}: {_names(changed.done)}.")
    if changed.left:
        lines.append(f"{left}: {_names(changed.left)}.")
    return "\n".join([*lines, *_unknown(changed.unknown)]) or NO_SUCH_JOBS


def _names(some: Sequence[JobView]) -> str:
    return ", ".join(f"{job.id} {job.description!r}" for job in some)


def _unknown(unknown: Sequence[str]) -> Sequence[str]:
    return [f"No jobs of this conversation: {', '.join(unknown)}."] if unknown else []


def _batch(job: JobView) -> str:
    return f" Batch {job.batch}." if job.batch else ""


def ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    teen = 10 < number % 100 < 14
    return f"{number}{'th' if teen else endings.get(number % 10, 'th')}"
