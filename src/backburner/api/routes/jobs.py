"""`/api/jobs`: start, list, read, follow up, cancel and remove jobs."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from backburner.actions.accounts import consent
from backburner.actions.origin import Origin
from backburner.actions.work import job_trees, jobs, user_jobs
from backburner.api.http.auth import Reader, Writer
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.idempotency import IdempotentRoute
from backburner.api.http.openapi import error_responses
from backburner.api.http.pages import PageOut, Paging, make_page
from backburner.api.schemas.base import ConversationIdQuery, JobIdPath, ParentIdQuery
from backburner.api.schemas.job import (
    AgentOut,
    JobChangesOut,
    JobFollowUpBody,
    JobOut,
    JobSelectionBody,
    JobSummaryOut,
    NewJobBody,
)
from backburner.api.schemas.views.job_tree import JobTreesOut
from backburner.core.validation import check_text
from backburner.core.work.jobs import MAX_BATCH_CHARS
from backburner.core.work.views import JobStatus

router = APIRouter(prefix="/api/jobs", tags=["jobs"], route_class=IdempotentRoute)

agents_router = APIRouter(prefix="/api/agents", tags=["jobs"])

BatchQuery = Annotated[str, Query(max_length=MAX_BATCH_CHARS, description="The group of jobs.")]


@agents_router.get("", summary="List agents")
async def list_agents(deps: AppDeps, caller: Reader) -> list[AgentOut]:
    """List the agents that jobs and tasks can name: built in, and from the settings."""
    del caller
    return [AgentOut.of(agent) for agent in deps.agents.values()]


@router.get("", summary="List jobs", responses=error_responses(404))
async def list_jobs(
    deps: AppDeps,
    caller: Reader,
    *,
    status: JobStatus | None = None,
    batch: BatchQuery | None = None,
    parent_id: ParentIdQuery | None = None,
    paging: Paging,
) -> PageOut[JobSummaryOut]:
    """List the jobs of all conversations, last changed first."""
    page = await user_jobs.list_jobs(
        deps,
        caller.user,
        paging.after(datetime, str),
        limit=paging.limit,
        status=status,
        batch=None if batch is None else check_text("batch", batch, limit=MAX_BATCH_CHARS),
        parent=parent_id,
    )
    return make_page(page, JobSummaryOut.of)


@router.post("", summary="Start a job", status_code=201, responses=error_responses(404, 429))
async def start_job(body: NewJobBody, deps: AppDeps, caller: Writer) -> JobOut:
    """Start a job for a conversation; its result is kept there."""
    origin = Origin.by(caller, body.conversation)
    (job,) = await jobs.start(deps, origin, [body.request()], batch=body.batch, by_user=True)
    return JobOut.of(job)


@router.post("/cancel", summary="Cancel jobs", responses=error_responses(404))
async def cancel_jobs(body: JobSelectionBody, deps: AppDeps, caller: Writer) -> JobChangesOut:
    """Cancel running jobs. That is noted in their conversation."""
    changed = await user_jobs.cancel_many(
        deps, caller.user, body.conversation, ids=body.jobs, batch=body.batch
    )
    return JobChangesOut.of(changed)


@router.post("/clear", summary="Remove jobs", responses=error_responses(404))
async def clear_jobs(body: JobSelectionBody, deps: AppDeps, caller: Writer) -> JobChangesOut:
    """Remove finished jobs with their results: those listed, those of a batch, or all."""
    origin = Origin(caller.user, body.conversation)
    return JobChangesOut.of(await jobs.clear(deps, origin, ids=body.jobs, batch=body.batch))


@router.get("/tree", summary="List jobs as trees", responses=error_responses(404))
async def list_trees(
    deps: AppDeps, caller: Reader, conversation_id: ConversationIdQuery | None = None
) -> JobTreesOut:
    """List the jobs below a conversation, or below the 50 whose jobs changed last.

    At most 500 jobs are listed, and 100 of one conversation or job. `counts` are of all.
    """
    return JobTreesOut.of(await job_trees.trees(deps, caller.user, conversation_id))


@router.get("/{job_id}", summary="Get a job")
async def get_job(job_id: JobIdPath, deps: AppDeps, caller: Reader) -> JobOut:
    """Show its status, its activity so far, and its result once it is completed.

    This does not count as its parent reading the result.
    """
    return JobOut.of(await user_jobs.show(deps, caller.user, job_id))


@router.delete("/{job_id}", summary="Remove a job", status_code=204, responses=error_responses(409))
async def delete_job(job_id: JobIdPath, deps: AppDeps, caller: Writer) -> None:
    """Remove a finished job. The journal of tool calls and the spending are kept."""
    await user_jobs.delete(deps, caller.user, job_id)


@router.post("/{job_id}/cancel", summary="Cancel a job")
async def cancel_job(job_id: JobIdPath, deps: AppDeps, caller: Writer) -> JobOut:
    """Cancel it and all jobs that it started. That is noted in its conversation."""
    return JobOut.of(await user_jobs.cancel(deps, caller.user, job_id))


@router.post("/{job_id}/resume", summary="Follow up on a job")
async def resume_job(
    job_id: JobIdPath, body: JobFollowUpBody, deps: AppDeps, caller: Writer
) -> JobOut:
    """Give a completed job further instructions. The agent keeps its session.

    If it uses a connection or a folder that the token was not given, that needs a credential that
    may approve.
    """
    check = consent.instructions_checker(caller)
    return JobOut.of(
        await user_jobs.resume(deps, caller.user, job_id, body.message, check_instructions=check)
    )
