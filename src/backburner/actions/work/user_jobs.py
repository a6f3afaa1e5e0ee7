"""Jobs as their user sees them, across all conversations."""

from collections.abc import Collection

from backburner.actions import steps
from backburner.actions.browse import Page
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.work import jobs
from backburner.actions.work.instructions import CheckInstructions
from backburner.actions.work.jobs import JobsChanged
from backburner.core.conversation import Conversation, Kind
from backburner.core.errors import BadRequest, Conflict, NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.core.work.views import JobStatus, JobView
from backburner.ports import ConversationFilter, PageKey, Tx, View


async def list_jobs(
    deps: Deps,
    user: UserId,
    after: PageKey | None,
    *,
    limit: int,
    status: JobStatus | None = None,
    batch: str | None = None,
    parent: ConversationId | None = None,
) -> Page[JobView]:
    """List jobs, last changed first."""
    filters = ConversationFilter(view=View.JOBS, job=status, batch=batch, parent_id=parent)

    def work(tx: Tx) -> Page[JobView]:
        page = tx.browse.conversations(user, filters, after, limit=limit)
        conversations = [row.conversation for row in page.conversations]
        return Page(jobs.views(tx, user, conversations), page.next_key)

    return await deps.store.read(work)


async def show(deps: Deps, user: UserId, conversation_id: ConversationId) -> JobView:
    """Show a job without marking its result as retrieved."""
    return await deps.store.read(lambda tx: _view(tx, _load(tx, user, conversation_id)))


async def resume(
    deps: Deps,
    user: UserId,
    conversation_id: ConversationId,
    message: str,
    *,
    check_instructions: CheckInstructions | None = None,
) -> JobView:
    """Continue a completed job with another message; the result is reported to its parent."""
    origin = await _origin(deps, user, conversation_id)
    return await jobs.resume(
        deps, origin, conversation_id, message, check_instructions=check_instructions
    )


async def cancel(deps: Deps, user: UserId, conversation_id: ConversationId) -> JobView:
    """Cancel a job with its own jobs, and report that to its parent."""
    done = list[ConversationId]()

    def work(tx: Tx) -> JobView:
        job = _load(tx, user, conversation_id)
        # An earlier attempt may have been committed although its result was lost.
        if steps.stop_all(tx, job, by_parent=False):
            done.append(conversation_id)
        elif conversation_id not in done:
            raise Conflict("This job is not running.")
        return _view(tx, _load(tx, user, conversation_id))

    return await deps.store.transact(work)


async def cancel_many(
    deps: Deps,
    user: UserId,
    parent: ConversationId,
    *,
    ids: Collection[str] = (),
    batch: str | None = None,
) -> JobsChanged:
    """Cancel jobs of one conversation, by id or batch."""
    if not ids and not batch:
        raise BadRequest("There are no jobs to cancel.", hint="Give their ids or a batch.")
    origin, done = Origin(user, parent), list[ConversationId]()

    def work(tx: Tx) -> JobsChanged:
        tx.conversations.load(user, parent)
        found, unknown = jobs.find(tx, origin, ids, batch)
        done.extend(job.id for job in found if steps.stop_all(tx, job, by_parent=False))
        shown = jobs.views(tx, user, jobs.find(tx, origin, ids, batch)[0])
        return JobsChanged(
            done=[job for job in shown if job.id in done],
            left=[job for job in shown if job.id not in done],
            unknown=unknown,
        )

    return await deps.store.transact(work)


async def delete(deps: Deps, user: UserId, conversation_id: ConversationId) -> None:
    """Delete a job that has ended; tool calls and spend are kept."""
    origin = await _origin(deps, user, conversation_id)
    changed = await jobs.clear(deps, origin, ids=[conversation_id])
    if changed.left:
        raise Conflict("This job has not ended.", hint="Cancel it first.")


async def _origin(deps: Deps, user: UserId, conversation_id: ConversationId) -> Origin:
    job = await deps.store.read(lambda tx: _load(tx, user, conversation_id))
    return Origin(user, job.parent_id or conversation_id)


def _load(tx: Tx, user: UserId, conversation_id: ConversationId) -> Conversation:
    job = tx.conversations.load(user, conversation_id)
    if job.kind is not Kind.JOB:
        raise NotFound
    return job


def _view(tx: Tx, job: Conversation) -> JobView:
    (view,) = jobs.views(tx, job.user_id, [job])
    return view
