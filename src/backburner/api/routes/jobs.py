"""`/api/jobs`: work that conversations handed out, started, found, followed up and put away."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AfterValidator, Field

from backburner.actions.work import user_jobs
from backburner.actions.work.jobs import MAX_JOBS_PER_CALL, JobRequest
from backburner.api.http import pages
from backburner.api.http.auth import Reader, TheDeps, Writer
from backburner.api.http.idempotency import KeyedRoute
from backburner.api.http.pages import USUAL, Cursor, Limit, Page
from backburner.api.schemas.base import BODY, Body, Id, as_id, example, refusals
from backburner.api.schemas.job import ChangedOut, JobItem, JobOut
from backburner.core.conversation import MAX_TITLE_CHARS
from backburner.core.ids import ConversationId
from backburner.core.validation import check_text
from backburner.core.work.jobs import MAX_BATCH_CHARS
from backburner.core.work.views import JobStatus

_PARENT = "c_srqpnmkjhgfedcba9876543210"

Parent = Annotated[str, Query(description="What handed them out."), AfterValidator(as_id)]
Batch = Annotated[str, Query(max_length=MAX_BATCH_CHARS, description="The group of them.")]


class NewJob(Body):
    """A piece of work for a conversation to hand out, which is told the result."""

    model_config = example(
        conversation=_PARENT, description="Count the files", prompt="Count the files here."
    )

    conversation: Annotated[str, AfterValidator(as_id)] = Field(description="Whose job it is.")
    description: str = Field(
        min_length=1, max_length=MAX_TITLE_CHARS, description="A short name, for people."
    )
    prompt: str = Field(min_length=1, description="What is to be done, complete in itself.")
    agent: str | None = Field(default=None, description="A named model; null: as is usual.")
    batch: str = Field(
        default="", max_length=MAX_BATCH_CHARS, description="The group it belongs to; empty: a new."
    )

    def wish(self) -> JobRequest:
        return JobRequest(
            description=self.description, prompt=self.prompt, agent=self.agent or None
        )


class FollowUp(Body):
    model_config = example(message="And how many of them are empty?")

    message: str = Field(min_length=1, description="What else is to be done, or answered.")


class Some(Body):
    """Jobs of one conversation: those that are named, or those of a batch."""

    model_config = example(conversation=_PARENT, batch="b_0123456789abcdefghjkmnpqrs")

    conversation: Annotated[str, AfterValidator(as_id)]
    jobs: list[str] = Field(
        default=[], max_length=MAX_JOBS_PER_CALL, description="Ids, or how they begin."
    )
    batch: str | None = Field(default=None, max_length=MAX_BATCH_CHARS)


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["jobs"], route_class=KeyedRoute)
    _add_collection(router)
    _add_some(router)
    _add_one(router)
    return router


def _add_collection(router: APIRouter) -> None:
    @router.get("/jobs", summary="List jobs", responses=refusals(404))
    async def list_jobs(
        deps: TheDeps,
        caller: Reader,
        *,
        status: JobStatus | None = None,
        batch: Batch | None = None,
        parent_id: Parent | None = None,
        limit: Limit = USUAL,
        cursor: Cursor = None,
    ) -> Page[JobItem]:
        """List jobs wherever they were handed out from, those that changed last first."""
        found = await user_jobs.listed(
            deps,
            caller.user,
            pages.read(cursor, datetime, str),
            limit=limit,
            status=status,
            batch=None if batch is None else check_text("batch", batch, limit=MAX_BATCH_CHARS),
            parent=ConversationId(parent_id) if parent_id else None,
        )
        return pages.show(found, JobItem.of)

    @router.post(
        "/jobs", summary="Start a job", status_code=201, responses=refusals(404, 409, 429, *BODY)
    )
    async def start_job(body: NewJob, deps: TheDeps, caller: Writer) -> JobOut:
        """Hand out a piece of work under a conversation, which is told what came of it."""
        parent = ConversationId(body.conversation)
        job = await user_jobs.start(deps, caller.user, parent, body.wish(), batch=body.batch)
        return JobOut.of(job)


def _add_some(router: APIRouter) -> None:
    @router.post("/jobs/cancel", summary="Cancel some jobs", responses=refusals(404, 409, *BODY))
    async def cancel_jobs(body: Some, deps: TheDeps, caller: Writer) -> ChangedOut:
        """Stop those that are at work; what handed them out is told so."""
        parent = ConversationId(body.conversation)
        changed = await user_jobs.cancel_some(
            deps, caller.user, parent, ids=body.jobs, batch=body.batch
        )
        return ChangedOut.of(changed)

    @router.post("/jobs/clear", summary="Remove jobs", responses=refusals(404, 409, *BODY))
    async def clear_jobs(body: Some, deps: TheDeps, caller: Writer) -> ChangedOut:
        """Remove those that have ended, with their results: some, a batch, or all of them."""
        parent = ConversationId(body.conversation)
        changed = await user_jobs.clear(deps, caller.user, parent, ids=body.jobs, batch=body.batch)
        return ChangedOut.of(changed)


def _add_one(router: APIRouter) -> None:
    path = "/jobs/{which}"

    @router.get(path, summary="Look at a job", responses=refusals(404))
    async def get_job(which: Id, deps: TheDeps, caller: Reader) -> JobOut:
        """Show how it stands, and its result if there is one; what handed it out has not read it.

        Of a job at work: how many tools it has called, the last ones, and when it was heard of.
        """
        return JobOut.of(await user_jobs.look(deps, caller.user, ConversationId(which)))

    @router.delete(path, summary="Remove a job", status_code=204, responses=refusals(404, 409))
    async def delete_job(which: Id, deps: TheDeps, caller: Writer) -> None:
        """Remove one that has ended; what was done and spent stays known."""
        await user_jobs.delete(deps, caller.user, ConversationId(which))

    @router.post(f"{path}/cancel", summary="Cancel a job", responses=refusals(404, 409))
    async def cancel_job(which: Id, deps: TheDeps, caller: Writer) -> JobOut:
        """Stop it, with all that it handed out itself; what handed it out is told so."""
        return JobOut.of(await user_jobs.cancel(deps, caller.user, ConversationId(which)))

    @router.post(
        f"{path}/resume", summary="Follow up on a job", responses=refusals(404, 409, *BODY)
    )
    async def resume_job(which: Id, body: FollowUp, deps: TheDeps, caller: Writer) -> JobOut:
        """Give a completed one something more to do; its agent remembers what it did."""
        found = await user_jobs.resume(deps, caller.user, ConversationId(which), body.message)
        return JobOut.of(found)
