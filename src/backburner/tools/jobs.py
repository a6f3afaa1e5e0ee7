"""Tools for jobs: work that an agent delegates."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Literal

from pydantic import Field

from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.work import jobs, wait
from backburner.actions.work.jobs import JobRequest, JobsChanged, JobSelection
from backburner.core import prompt
from backburner.core.conversation import MAX_TITLE_CHARS
from backburner.core.outcome import format_result
from backburner.core.work.folders import MAX_PATH_CHARS
from backburner.core.work.jobs import MAX_BATCH_CHARS, describe_job, summarize_jobs
from backburner.core.work.views import JobStatus, JobView
from backburner.ports import JobWait, Offer, ToolResult
from backburner.tools.define import (
    CONNECTIONS,
    Arguments,
    Timeout,
    define_tool,
    describe_for_clients,
)

#: Of all results that one call returns; the gate passes no more.
MAX_RESULTS_CHARS = 90_000
MAX_JOBS_LISTED = 100
MAX_JOB_WAIT_SECONDS = 24 * 60 * 60

_IDS = "Ids of jobs from background_task, or the beginning of an id if only one job has it."
_BATCH = "The batch from background_task."
NO_SUCH_JOBS = "There are no such jobs."
WAITING_FOR_JOBS = (
    "Not all of these jobs have settled, so your run is suspended and costs nothing. It continues"
    " automatically, with a summary, when they have settled, the user writes, or the time is up."
    " End your turn now."
)


class StartJob(Arguments):
    description: str = Field(
        min_length=1, max_length=MAX_TITLE_CHARS, description="A short name for the user."
    )
    prompt: str = Field(
        min_length=1,
        description="What to do. Make it self-contained: the job does not see this conversation."
        " Describe what the result should look like.",
    )
    agent: str = Field(
        default="",
        description="`general`, `researcher` (reads only), `coder`, or one that the user names.",
    )
    timeout: Timeout = None
    folder: str | None = Field(
        default=None,
        max_length=MAX_PATH_CHARS,
        description="The folder to work in, among those the user has added; null: that of here.",
    )
    connections: list[str] = Field(default=[], description=CONNECTIONS)
    batch: str = Field(
        default="",
        max_length=MAX_BATCH_CHARS,
        description="A name for jobs that belong together. Default: all jobs that you start before"
        " your next answer are one batch.",
    )


class StartClientJob(StartJob):
    batch: str = Field(
        default="",
        max_length=MAX_BATCH_CHARS,
        description="A name for jobs that belong together. Default: a batch of its own.",
    )


class ShowJobs(Arguments):
    task_id: str = Field(default="", description="The id of a job, or its beginning.")
    batch: str = Field(default="", description=f"{_BATCH} Shows all its jobs.")


class WaitForJobs(Arguments):
    task_ids: list[str] = Field(default=[], max_length=jobs.MAX_JOBS_PER_CALL, description=_IDS)
    batch: str = Field(default="", description=f"{_BATCH} Waits for all its jobs.")
    timeout: float = Field(
        default=60,
        ge=0,
        le=MAX_JOB_WAIT_SECONDS,
        description="The maximum time to wait, in seconds.",
    )


class ResumeJob(Arguments):
    task_id: str = Field(min_length=1, description="The id of a completed job, or its beginning.")
    message: str = Field(min_length=1, description="The follow-up: what else to do or to answer.")


class JobSelector(Arguments):
    task_ids: list[str] = Field(default=[], max_length=jobs.MAX_JOBS_PER_CALL, description=_IDS)
    batch: str = Field(default="", description=_BATCH)


class ListJobs(Arguments):
    status: Literal["", "running", "completed", "error", "cancelled", "resumed"] = Field(
        default="", description="List only jobs with this status."
    )
    batch: str = Field(default="", description=_BATCH)


#: Descriptions for clients outside, to which no result is sent.
CLIENT_TEXTS = {
    "background_task": "Start a job in the background and return its id immediately; continue"
    " meanwhile. Use it for work that takes a while and can be done without you; start several if"
    " useful. The result is not sent to you: wait for it with background_block, or read it later"
    " with background_output.",
    "background_resume": "Give a completed job a follow-up; it remembers its work. Returns"
    " immediately; wait for the new result with background_block, or read it later with"
    " background_output.",
    "background_list": "List the jobs that were started with this client's token, newest first,"
    " without their results.",
}


def job_offers(deps: Deps, origin: Origin) -> Sequence[Offer]:
    offers = _offers(deps, origin)
    if origin.turn is not None:
        return offers
    start = define_tool("background_task", StartClientJob, _Tools(deps, origin).start, free=True)
    return describe_for_clients([start, *offers[1:]], CLIENT_TEXTS)


def _offers(deps: Deps, origin: Origin) -> Sequence[Offer]:
    tools = _Tools(deps, origin)
    # Results are quoted in what they return; the action says whether they are outside text.
    reads: dict[str, Any] = {"free": True, "read_only": True, "waits": True}
    return (
        define_tool("background_task", StartJob, tools.start, free=True),
        define_tool("background_output", ShowJobs, tools.output, **reads),
        define_tool("background_block", WaitForJobs, tools.block, **reads),
        define_tool("background_resume", ResumeJob, tools.resume, free=True),
        define_tool("background_cancel", JobSelector, tools.cancel, free=True),
        define_tool("background_list", ListJobs, tools.list, free=True, read_only=True),
        define_tool("background_clear", JobSelector, tools.clear, free=True),
    )


class _Tools:
    def __init__(self, deps: Deps, origin: Origin) -> None:
        self._deps = deps
        self._origin = origin

    async def start(self, arguments: StartJob) -> str:
        """Start a job in the background and return its id immediately; continue meanwhile.

        Use it for work that takes a while and can be done without you; start several if useful.
        The result is sent to this conversation when the job has finished, so do not poll for it. A
        job has the tools and permissions of this conversation, and the connections that you name.
        """
        request = JobRequest(
            description=arguments.description,
            prompt=arguments.prompt,
            agent=arguments.agent.strip() or None,
            timeout=arguments.timeout,
            folder=arguments.folder,
            connections=arguments.connections,
        )
        (job,) = await jobs.start(self._deps, self._origin, [request], batch=arguments.batch)
        return (
            f"Started {job.id} {job.description!r}, batch {job.batch}: {job.status}."
            f" {self._how_to_get_the_result()}"
        )

    async def output(self, arguments: ShowJobs) -> ToolResult:
        """Show the status of a job or of a whole batch, with results; never waits.

        For a running job it shows the number of tool calls, the last ones, the last activity, and
        its progress.
        """
        selection = await jobs.fetch(
            self._deps, self._origin, [arguments.task_id], batch=arguments.batch
        )
        if selection.unknown:
            raise jobs.jobs_not_found(selection.unknown)
        is_one = bool(arguments.task_id.strip())
        text = _describe_output(selection) if is_one else _summarize(selection)
        return ToolResult(text, served=selection.items)

    async def block(self, arguments: WaitForJobs) -> ToolResult:
        """Wait until all of these jobs have ended, are paused or need the user, or for a timeout.

        Name them by id, or as a batch. Returns a summary of all of them, with results. Use it when
        you cannot continue without them. After background_resume it waits for the new result.
        """
        timeout = timedelta(seconds=arguments.timeout)
        if self._origin.turn is None:
            selection = await wait.wait_in_call(
                self._deps, self._origin, arguments.task_ids, timeout, batch=arguments.batch
            )
            return ToolResult(_summarize(selection))
        awaited = await wait.fetch_or_wait(
            self._deps, self._origin, arguments.task_ids, timeout, batch=arguments.batch
        )
        if isinstance(awaited, JobWait):
            return ToolResult(WAITING_FOR_JOBS, wait=awaited)
        return ToolResult(_summarize(awaited), served=awaited.items)

    async def resume(self, arguments: ResumeJob) -> str:
        """Give a completed job a follow-up; it remembers its work. Returns immediately.

        The new result is sent to this conversation, as the first one was.
        """
        job = await jobs.resume(self._deps, self._origin, arguments.task_id, arguments.message)
        return (
            f"Resumed {job.id} {job.description!r} for the {ordinal(job.resume_count)} time:"
            f" {job.status}. {self._how_to_get_the_result()}"
        )

    def _how_to_get_the_result(self) -> str:
        if self._origin.turn is None:
            return "Wait for its result with background_block, or read it with background_output."
        return "Its result will be sent here; use background_block to wait for it."

    async def cancel(self, arguments: JobSelector) -> str:
        """Cancel jobs that are no longer needed: by id, or a whole batch."""
        changed = await jobs.cancel(
            self._deps, self._origin, ids=arguments.task_ids, batch=arguments.batch
        )
        return _describe_changes("Cancelled", changed, "Already ended")

    async def list(self, arguments: ListJobs) -> str:
        """List the jobs of this conversation, newest first, without their results."""
        status = JobStatus(arguments.status) if arguments.status else None
        selection = await jobs.list_jobs(
            self._deps, self._origin, status=status, batch=arguments.batch
        )
        listed = selection.jobs[:MAX_JOBS_LISTED]
        lines = [f"- {describe_job(job)}{_batch(job)}" for job in listed]
        if len(selection.jobs) > MAX_JOBS_LISTED:
            lines.append(f"{len(selection.jobs) - MAX_JOBS_LISTED} older jobs are not listed.")
        return "\n".join(lines) or NO_SUCH_JOBS

    async def clear(self, arguments: JobSelector) -> str:
        """Remove ended jobs and their results: by id, a whole batch, or all of them."""
        changed = await jobs.clear(
            self._deps, self._origin, ids=arguments.task_ids, batch=arguments.batch
        )
        return _describe_changes("Removed", changed, "Kept, because they have not ended")


def _summarize(selection: JobSelection) -> str:
    parts = [summarize_jobs(selection.jobs)] if selection.jobs else []
    with_text = [job for job in selection.jobs if job.result is not None or job.error is not None]
    limit = MAX_RESULTS_CHARS // max(1, len(with_text))
    parts += [f"{job.id}:\n{_quote_result(job, limit)}" for job in with_text]
    return "\n".join([*parts, *_unknown(selection.unknown)]) or NO_SUCH_JOBS


def _describe_output(selection: JobSelection) -> str:
    (job,) = selection.jobs
    result = _quote_result(job, MAX_RESULTS_CHARS)
    if job.progress is not None:
        # Its own words, which text from outside may have suggested.
        result = prompt.quote_outside("job", f"It says: {job.progress.text}")
    return f"{describe_job(job)}\n{result}" if result else describe_job(job)


def _quote_result(job: JobView, limit: int) -> str:
    """Quote the result or error of a job as outside text."""
    text = job.error if job.result is None else job.result
    if text is None:
        return ""
    result = "" if job.data is None else format_result(job.data)
    if result and job.result not in (None, result):
        text = f"{text}\n\nResult: {result}"
    return prompt.quote_outside("job", prompt.truncate(text, limit))


def _describe_changes(done: str, changed: JobsChanged, left: str) -> str:
    lines = []
    if changed.done:
        lines.append(f"{done}: {_names(changed.done)}.")
    if changed.left:
        lines.append(f"{left}: {_names(changed.left)}.")
    return "\n".join([*lines, *_unknown(changed.unknown)]) or NO_SUCH_JOBS


def _names(selected: Sequence[JobView]) -> str:
    return ", ".join(f"{job.id} {job.description!r}" for job in selected)


def _unknown(unknown: Sequence[str]) -> Sequence[str]:
    return [f"There are no such jobs: {', '.join(unknown)}."] if unknown else []


def _batch(job: JobView) -> str:
    return f" Batch {job.batch}." if job.batch else ""


def ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    teen = 10 < number % 100 < 14
    return f"{number}{'th' if teen else endings.get(number % 10, 'th')}"
