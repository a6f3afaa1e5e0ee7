"""What people do with jobs of theirs, wherever those were handed out from."""

from collections.abc import Collection

from backburner.actions import steps
from backburner.actions.browse import Page
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.work import jobs
from backburner.actions.work.jobs import JobRequest, JobsChanged
from backburner.core.conversation import Conversation, Kind
from backburner.core.errors import BadRequest, Conflict, NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.core.work.views import JobStatus, JobView
from backburner.ports import ConversationFilter, PageKey, Tx, View


async def listed(
    deps: Deps,
    user: UserId,
    after: PageKey | None,
    *,
    limit: int,
    status: JobStatus | None = None,
    batch: str | None = None,
    parent: ConversationId | None = None,
) -> Page[JobView]:
    """Read jobs, those that changed last first."""
    wanted = ConversationFilter(view=View.JOBS, job=status, batch=batch, parent_id=parent)

    def work(tx: Tx) -> Page[JobView]:
        found = tx.browse.conversations(user, wanted, after, limit=limit)
        some = [seen.conversation for seen in found.conversations]
        return Page(jobs.views(tx, user, some), found.next_key)

    return await deps.store.transact(work)


async def look(deps: Deps, user: UserId, conversation_id: ConversationId) -> JobView:
    """See how a job stands; its result counts as read by nobody."""
    return await deps.store.transact(lambda tx: _view(tx, _load(tx, user, conversation_id)))


async def start(
    deps: Deps, user: UserId, parent: ConversationId, wish: JobRequest, *, batch: str = ""
) -> JobView:
    (job,) = await jobs.start(deps, Origin(user, parent), [wish], batch=batch)
    return job


async def resume(
    deps: Deps, user: UserId, conversation_id: ConversationId, message: str
) -> JobView:
    """Give a completed job one more thing to do; what handed it out is told the answer."""
    return await jobs.resume(
        deps, await _origin(deps, user, conversation_id), conversation_id, message
    )


async def cancel(deps: Deps, user: UserId, conversation_id: ConversationId) -> JobView:
    """Stop a job with all that it handed out; what handed it out itself is told so."""
    done = list[ConversationId]()

    def work(tx: Tx) -> JobView:
        found = _load(tx, user, conversation_id)
        # An earlier try may have gone through, and only its answer been lost.
        if steps.stop_all(tx, found, by_parent=False):
            done.append(conversation_id)
        elif conversation_id not in done:
            raise Conflict("This job is not at work any more.")
        return _view(tx, _load(tx, user, conversation_id))

    return await deps.store.transact(work)


async def cancel_some(
    deps: Deps,
    user: UserId,
    parent: ConversationId,
    *,
    ids: Collection[str] = (),
    batch: str | None = None,
) -> JobsChanged:
    """Stop jobs of one conversation: those that are named, or a batch."""
    if not ids and not batch:
        raise BadRequest("Which jobs are to be cancelled?", hint="Give their ids, or a batch.")
    origin, done = Origin(user, parent), list[ConversationId]()

    def work(tx: Tx) -> JobsChanged:
        tx.conversations.load(user, parent)
        found, unknown = jobs.find(tx, origin, ids, batch)
        done.extend(job.id for job in found if steps.stop_all(tx, job, by_parent=False))
        shown = jobs.views(tx, user, jobs.find(tx, origin, ids, batch)[0])
        return JobsChanged(
            done=[one for one in shown if one.id in done],
            left=[one for one in shown if one.id not in done],
            unknown=unknown,
        )

    return await deps.store.transact(work)


async def clear(
    deps: Deps,
    user: UserId,
    parent: ConversationId,
    *,
    ids: Collection[str] = (),
    batch: str | None = None,
) -> JobsChanged:
    """Remove jobs of one conversation that have ended: some, a batch, or all of them."""
    return await jobs.clear(deps, Origin(user, parent), ids=ids, batch=batch)


async def delete(deps: Deps, user: UserId, conversation_id: ConversationId) -> None:
    """Remove a job that has ended; what was done and spent stays known."""
    changed = await jobs.clear(
        deps, await _origin(deps, user, conversation_id), ids=[conversation_id]
    )
    if changed.left:
        raise Conflict("This job has not ended.", hint="Cancel it first.")


async def _origin(deps: Deps, user: UserId, conversation_id: ConversationId) -> Origin:
    """Find where a job was handed out from: there it can be reached."""
    job = await deps.store.transact(lambda tx: _load(tx, user, conversation_id))
    return Origin(user, job.parent_id or conversation_id)


def _load(tx: Tx, user: UserId, conversation_id: ConversationId) -> Conversation:
    found = tx.conversations.load(user, conversation_id)
    if found.kind is not Kind.JOB:
        raise NotFound
    return found


def _view(tx: Tx, job: Conversation) -> JobView:
    (view,) = jobs.views(tx, job.user_id, [job])
    return view
