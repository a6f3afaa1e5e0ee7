"""Jobs of a conversation: start, list, fetch results, resume, cancel, clear.

Only jobs that the same conversation started can be reached. A unique prefix of an id is enough.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from backburner.actions import create, steps
from backburner.actions.conversations import remove
from backburner.actions.deps import Deps
from backburner.actions.lookup import ancestry
from backburner.actions.origin import Origin
from backburner.actions.steps import save
from backburner.actions.waits.shown import awaited_sign_ins
from backburner.actions.work import chosen_connections, folders
from backburner.actions.work.instructions import CheckInstructions
from backburner.core import routing, transitions
from backburner.core.conversation import (
    Author,
    Conversation,
    Notify,
    Uses,
    WorkFolder,
    common_uses,
    make_title,
    mark_brief,
)
from backburner.core.errors import BadRequest, Conflict, NotAllowed, NotFound
from backburner.core.ids import (
    ConversationId,
    ItemId,
    MessageId,
    UserId,
    derive_batch_id,
    new_batch_id,
    new_conversation_id,
    new_message_id,
)
from backburner.core.run import Item, ItemKind, RunKind
from backburner.core.schedule import Immediate
from backburner.core.transitions import TEST_RUN_BATCH, Brief
from backburner.core.validation import check_text
from backburner.core.work import jobs, lookup
from backburner.core.work.timeouts import check_timeout
from backburner.core.work.views import JobStatus, JobView, WorkSummary, job_view
from backburner.ports import Tx

MAX_JOBS_PER_CALL = 500
JOB_SESSION_GONE = "The agent no longer remembers this job."
JOB_SESSION_GONE_HINT = "Start a new job with a complete prompt."


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    description: str
    prompt: str
    #: The name of an agent or a profile; None: as in the parent.
    agent: str | None = None
    #: A folder that was added, by its path or name; None: that of the parent.
    folder: str | None = None
    #: None: the default of jobs.
    timeout: timedelta | None = None
    #: The names of connections, among those of the conversation.
    connections: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSelection:
    jobs: Sequence[JobView]
    #: Requested ids that match no job or several.
    unknown: Sequence[str] = ()
    #: Inbox items that report these results.
    items: tuple[ItemId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsChanged:
    done: Sequence[JobView]
    #: Jobs in a state that does not allow the change.
    left: Sequence[JobView] = ()
    unknown: Sequence[str] = ()


async def start(
    deps: Deps,
    origin: Origin,
    requests: Sequence[JobRequest],
    *,
    batch: str = "",
    by_user: bool = False,
) -> Sequence[JobView]:
    """Start jobs. Without a name, those of one run or one external call are a batch.

    `by_user`: no agent waits for them, so they notify the user themselves.
    """
    _check_new(requests, batch)
    timeouts = [request.timeout or deps.limits.job_timeout for request in requests]
    agents = [deps.agent(request.agent) for request in requests]
    ids = [new_conversation_id() for _ in requests]
    batch = batch.strip() or _new_batch(origin)

    def work(tx: Tx) -> Sequence[JobView]:
        here = origin.hold_to_start(tx)
        # An earlier attempt may have been committed although its result was lost.
        with suppress(NotFound):
            return [_view(tx.conversations.load(origin.user, job_id)) for job_id in ids]
        lineage = list(ancestry(tx, here))
        root = lineage[-1]
        if root.id != here.id:
            tx.conversations.lock(root.user_id, root.id)
        open_jobs = tx.jobs.count_open(root.user_id, root.id)
        jobs.check_new_jobs(lineage, open_jobs=open_jobs, new_jobs=len(requests))
        message_id = _answered_message(tx, origin)
        started = []
        uses = common_uses(here.uses, origin.uses)
        for job_id, request, timeout, agent in zip(ids, requests, timeouts, agents, strict=True):
            brief = replace(
                create.with_agent(deps, _brief(here, request, batch, root.id), agent),
                run_timeout=timeout,
                uses=uses,
                folder=_choose_folder(tx, deps, origin, here, request.folder, uses),
                connections=chosen_connections.choose(tx, origin, request.connections, here=here),
                set_up_by=origin.run_id,
                parent_run_id=origin.run_id,
                parent_message_id=message_id,
            )
            if by_user:
                brief = replace(brief, created_by=Author.USER, notify=here.notify)
            step = transitions.start_job(job_id, here.user_id, brief, now=tx.now)
            # Outside text that was read here may have suggested the prompt.
            job = mark_brief(step.conversation, outside=here.outside_read)
            job = routing.assign(job, deps.routes)
            tx.conversations.add(replace(step, conversation=job))
            started.append(_view(job))
        return started

    return await deps.store.transact(work)


def _choose_folder(
    tx: Tx, deps: Deps, origin: Origin, here: Conversation, path: str | None, uses: Uses
) -> WorkFolder | None:
    """Choose the folder of a job; an agent that may be injected gets no other one."""
    folder = folders.choose(tx, deps, here.user_id, path, here=here, uses=uses)
    if folder != here.folder and origin.turn is not None and not origin.may_start(here):
        raise NotAllowed(
            "A job may work in another folder only if the user has asked for it in a chat.",
            hint="Leave the folder out, or propose a task there.",
        )
    return folder


def _check_new(requests: Sequence[JobRequest], batch: str) -> None:
    if not requests:
        raise BadRequest("There are no jobs to start.", hint="Describe at least one.")
    for request in requests:
        check_timeout(request.timeout)
    check_text("The batch", batch, limit=jobs.MAX_BATCH_CHARS)
    if batch.strip() == TEST_RUN_BATCH:
        raise BadRequest(
            f"The batch name {TEST_RUN_BATCH!r} is reserved.", hint="Choose another name."
        )


async def list_jobs(
    deps: Deps,
    origin: Origin,
    *,
    ids: Collection[str] | None = None,
    status: JobStatus | None = None,
    batch: str | None = None,
) -> JobSelection:
    """List jobs, newest first: those with these ids, of a batch, or all."""

    def work(tx: Tx) -> JobSelection:
        found, unknown = find(tx, origin, ids, batch)
        shown = [job for job in views(tx, origin.user, found) if status in (None, job.status)]
        _mark_session(tx, deps, origin, shown)
        return JobSelection(jobs=shown, unknown=unknown)

    return await deps.store.transact(work)


async def fetch(
    deps: Deps, origin: Origin, ids: Collection[str], *, batch: str | None = None
) -> JobSelection:
    """Fetch jobs by id or batch, and mark available results as retrieved."""
    if not any(prefix.strip() for prefix in ids) and not batch:
        raise BadRequest("No job is named.", hint="Give its id, or a batch.")
    return await deps.store.transact(
        lambda tx: retrieve(tx, deps, origin, *find(tx, origin, ids, batch))
    )


async def have_settled(
    deps: Deps, origin: Origin, ids: Collection[str], *, batch: str | None = None
) -> bool:
    return await deps.store.read(lambda tx: are_settled(find(tx, origin, ids, batch)[0]))


def are_settled(conversations: Sequence[Conversation]) -> bool:
    return all(map(jobs.is_settled, conversations))


def retrieve_awaited(
    tx: Tx, user: UserId, conversation_ids: Collection[ConversationId]
) -> Sequence[JobView]:
    """Fetch the jobs that a run has waited for, and mark their results as retrieved."""
    if not conversation_ids:
        return ()
    found = sorted(tx.jobs.load(user, conversation_ids).values(), key=lambda job: job.created_at)
    return _mark_retrieved(tx, user, found)


def retrieve(
    tx: Tx,
    deps: Deps,
    origin: Origin,
    conversations: Sequence[Conversation],
    unknown: Sequence[str],
) -> JobSelection:
    shown = _mark_retrieved(tx, origin.user, conversations)
    _mark_session(tx, deps, origin, shown)
    ended = [job.id for job in shown if job.retrieved_at is not None]
    items = result_items(tx, origin.user, origin.conversation, ended)
    return JobSelection(jobs=shown, unknown=unknown, items=tuple(item.id for item in items))


def _mark_session(tx: Tx, deps: Deps, origin: Origin, shown: Sequence[JobView]) -> None:
    if any(job.outside for job in shown):
        origin.mark_outside_text(tx, deps)


def _mark_retrieved(
    tx: Tx, user: UserId, conversations: Sequence[Conversation]
) -> Sequence[JobView]:
    shown = views(tx, user, conversations)
    ended = {job.id for job in shown if job.status in (JobStatus.COMPLETED, JobStatus.ERROR)}
    tx.jobs.mark_retrieved(user, ended)
    return [
        replace(job, retrieved_at=job.retrieved_at or tx.now) if job.id in ended else job
        for job in shown
    ]


async def resume(
    deps: Deps,
    origin: Origin,
    reference: str,
    message: str,
    *,
    check_instructions: CheckInstructions | None = None,
) -> JobView:
    """Continue a completed job with another message, if its agent's session still exists.

    `check_instructions` refuses a caller who may not tell it what to do.
    """
    message_id = new_message_id()

    def work(tx: Tx) -> JobView:
        job = tx.conversations.lock(origin.user, _find_one(tx, origin, reference).id)
        # Parents are locked after their children, as when a child reports.
        outside = origin.hold(tx).outside_read
        if _is_stored(tx, job, message_id):
            return _view(job)
        step = transitions.follow_up(
            job, message, message_id=message_id, now=tx.now, outside=outside
        )
        check_session(deps, tx, job)
        if check_instructions is not None:
            check_instructions(tx, job)
        save(tx, step)
        return _view(step.conversation)

    return await deps.store.transact(work)


def check_session(deps: Deps, tx: Tx, job: Conversation) -> None:
    """Refuse to continue a job whose agent's session is gone or too long."""
    profile, session = job.profile or deps.default_profile, job.session
    if profile in deps.injection_proof:
        # Rule-based engines have no session.
        return
    if (
        session is None
        or session.profile != profile
        or session.tokens > deps.limits.chat_context
        or not tx.jobs.has_session(job.user_id, job.id, session.id)
    ):
        raise Conflict(JOB_SESSION_GONE, hint=JOB_SESSION_GONE_HINT)


async def cancel(
    deps: Deps, origin: Origin, *, ids: Collection[str] | None = None, batch: str | None = None
) -> JobsChanged:
    """Cancel jobs with their own jobs; the parent gets no report of it."""
    if not ids and not batch:
        raise BadRequest("There are no jobs to cancel.", hint="Give their ids or a batch.")
    done = list[ConversationId]()

    def work(tx: Tx) -> JobsChanged:
        found, unknown = find(tx, origin, ids, batch)
        # An earlier attempt may have been committed although its result was lost.
        done.extend(job.id for job in found if lookup.is_open(job) and job.id not in done)
        for job in found:
            steps.stop_all(tx, job)
        origin.hold(tx)
        found, _ = find(tx, origin, ids, batch)
        shown = views(tx, origin.user, found)
        stopped = [job for job in shown if job.id in done and job.status is JobStatus.CANCELLED]
        left = [job for job in shown if job not in stopped]
        return JobsChanged(done=stopped, left=left, unknown=unknown)

    return await deps.store.transact(work)


async def clear(
    deps: Deps, origin: Origin, *, ids: Collection[str] | None = None, batch: str | None = None
) -> JobsChanged:
    """Delete jobs that have ended, with their results; tool calls and spend are kept."""
    deleted = dict[ConversationId, JobView]()

    def work(tx: Tx) -> JobsChanged:
        found, unknown = find(tx, origin, ids, batch)
        shown = views(tx, origin.user, found)
        for job in shown:
            if has_ended(job):
                deleted[job.id] = job
                remove(tx, origin.user, job.id)
        origin.hold(tx)
        return JobsChanged(
            done=list(deleted.values()),
            left=[job for job in shown if job.id not in deleted],
            unknown=[
                prefix for prefix in unknown if not any(id_.startswith(prefix) for id_ in deleted)
            ],
        )

    return await deps.store.transact(work)


def has_ended(job: JobView) -> bool:
    return job.is_settled and job.status not in (JobStatus.RUNNING, JobStatus.RESUMED)


def views(tx: Tx, user: UserId, conversations: Sequence[Conversation]) -> Sequence[JobView]:
    """Build the job views of conversations."""
    work = tx.jobs.work_summaries(user, [job.id for job in conversations]) if conversations else {}
    awaited = awaited_sign_ins(tx, user, conversations)
    return [
        replace(_view(job, work[job.id]), waits_for=awaited.get(job.id)) for job in conversations
    ]


def result_items(
    tx: Tx, user: UserId, parent: ConversationId, conversation_ids: Collection[ConversationId]
) -> Sequence[Item]:
    """Find the items in the parent's inbox that report the results of jobs."""
    return [
        item
        for kind in RunKind
        for item in tx.inbox.waiting(user, parent, kind)
        if item.kind is ItemKind.JOB_RESULT
        and item.content.get("conversation_id") in conversation_ids
    ]


def find(
    tx: Tx, origin: Origin, ids: Collection[str] | None = None, batch: str | None = None
) -> tuple[Sequence[Conversation], Sequence[str]]:
    """Find jobs by id prefix or batch; also return the prefixes that match none or several."""
    prefixes = [prefix.strip() for prefix in ids or () if prefix.strip()]
    found = tx.jobs.started_by(
        origin.user,
        origin.conversation,
        limit=MAX_JOBS_PER_CALL,
        ids=prefixes or None,
        batch=batch or None,
    )
    if not prefixes:
        return found, ()
    selected, unknown = dict[ConversationId, Conversation](), list[str]()
    for prefix in prefixes:
        matches = [job for job in found if job.id.startswith(prefix)]
        if len(matches) == 1:
            selected[matches[0].id] = matches[0]
        else:
            unknown.append(f"{prefix} (matches several)" if matches else prefix)
    return list(selected.values()), unknown


def _find_one(tx: Tx, origin: Origin, reference: str) -> Conversation:
    found, unknown = find(tx, origin, [reference])
    if not reference.strip() or unknown:
        raise jobs_not_found(unknown or [reference])
    return found[0]


def jobs_not_found(references: Sequence[str]) -> NotFound:
    names = ", ".join(reference[:80] for reference in references)
    return NotFound(f"There is no such job: {names}.", hint="List the jobs to see their ids.")


def _view(job: Conversation, work: WorkSummary | None = None) -> JobView:
    view = job_view(job, work)
    if view is None:
        raise NotFound
    return view


def _brief(here: Conversation, request: JobRequest, batch: str, root: ConversationId) -> Brief:
    return Brief(
        title=" ".join(request.description.split()) or make_title(request.prompt),
        prompt=request.prompt,
        schedule=Immediate(),
        # The parent gets the result, and notifies the user if needed.
        notify=Notify.NEVER,
        # Jobs may use no more tools than their parent, and send questions where it does.
        tools=here.tools,
        agent=here.agent,
        profile=here.requested_profile,
        reports_to=here.reports_to,
        parent_id=here.id,
        root_id=root,
        batch=batch,
        created_by=Author.AGENT,
    )


def _new_batch(origin: Origin) -> str:
    return new_batch_id() if origin.turn is None else derive_batch_id(origin.turn.run_id)


def _answered_message(tx: Tx, origin: Origin) -> MessageId | None:
    """Find the message that the run answers, if any."""
    turn = origin.turn
    if turn is None:
        return None
    user, conversation_id = turn.user_id, turn.conversation_id
    served = tx.inbox.served_by(user, conversation_id, turn.run_id)
    items = [*served, *tx.inbox.waiting(user, conversation_id, turn.kind)]
    ids = [item.content.get("message_id") for item in items if item.kind is ItemKind.MESSAGE]
    return MessageId(ids[-1]) if ids and ids[-1] else None


def _is_stored(tx: Tx, job: Conversation, message_id: MessageId) -> bool:
    """Check whether an earlier attempt was committed although its result was lost."""
    with suppress(NotFound):
        tx.replies.message(job.user_id, job.id, message_id)
        return True
    return False
