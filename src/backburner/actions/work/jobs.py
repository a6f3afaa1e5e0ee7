"""Jobs: work that a conversation hands out, looks after, follows up and clears away.

Only what was handed out from the same conversation can be reached. Ids may be shortened as long as
they begin as just one does.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from backburner.actions import steps
from backburner.actions.conversations import remove
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.steps import save
from backburner.core import routing, transitions
from backburner.core.conversation import Author, Conversation, Notify, make_title
from backburner.core.errors import BadRequest, Conflict, NotFound
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
from backburner.core.work.views import JobStatus, JobView, WorkSummary, job_view
from backburner.ports import Tx

#: That are looked at together.
MAX_JOBS_PER_CALL = 500
JOB_SESSION_GONE = "The agent no longer remembers this job."
JOB_SESSION_GONE_HINT = "Start a new background_task, with all that it has to know."


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """A piece of work to hand out."""

    description: str
    #: All that the one who does it has to know.
    prompt: str
    #: The profile it is to work under; None: whichever the routes give.
    agent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSelection:
    """Jobs that were asked for, and what was asked for and is none here."""

    jobs: Sequence[JobView]
    unknown: Sequence[str] = ()
    #: What waits in the inbox to tell of these results.
    items: tuple[ItemId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsChanged:
    """Jobs to which something was done, those for which it was not the time, and no jobs at all."""

    done: Sequence[JobView]
    left: Sequence[JobView] = ()
    unknown: Sequence[str] = ()


async def start(
    deps: Deps, origin: Origin, wishes: Sequence[JobRequest], *, batch: str = ""
) -> Sequence[JobView]:
    """Hand out work; what is handed out in one run, or in one call from outside, is one batch."""
    if not wishes:
        raise BadRequest("There is nothing to do.", hint="Say what is to be done.")
    check_text("The batch", batch, limit=jobs.MAX_BATCH_CHARS)
    if batch.strip() == TEST_RUN_BATCH:
        raise BadRequest(
            f"{TEST_RUN_BATCH!r} is what tests of tasks are called.", hint="Choose another name."
        )
    ids = [new_conversation_id() for _ in wishes]
    together = batch.strip() or _new_batch(origin)

    def work(tx: Tx) -> Sequence[JobView]:
        here = origin.hold(tx)
        # An earlier try may have gone through, and only its answer been lost.
        with suppress(NotFound):
            return [_view(tx.conversations.load(origin.user, which)) for which in ids]
        ancestry = _ancestry(tx, here)
        root = ancestry[-1]
        if root.id != here.id:
            tx.conversations.lock(root.user_id, root.id)
        open_jobs = tx.jobs.count_open(root.user_id, root.id)
        jobs.check_new_jobs(ancestry, open_jobs=open_jobs, new_jobs=len(wishes))
        asked_in = _asked_in(tx, origin)
        made = []
        for which, wish in zip(ids, wishes, strict=True):
            brief = replace(
                _brief(here, wish, together, root.id),
                parent_run_id=None if origin.turn is None else origin.turn.run_id,
                parent_message_id=asked_in,
            )
            born = transitions.start_job(which, here.user_id, brief, now=tx.now)
            # What was read here may have put the idea there.
            job = replace(born.conversation, outside_read=here.outside_read)
            job = routing.assign(job, deps.routes)
            tx.conversations.add(replace(born, conversation=job))
            made.append(_view(job))
        return made

    return await deps.store.transact(work)


async def look(
    deps: Deps,
    origin: Origin,
    *,
    ids: Collection[str] | None = None,
    status: JobStatus | None = None,
    batch: str | None = None,
) -> JobSelection:
    """See how jobs stand: those that are named, of a batch, or all; newest first."""

    def work(tx: Tx) -> JobSelection:
        found, unknown = find(tx, origin, ids, batch)
        shown = views(tx, origin.user, found)
        kept = [one for one in shown if status is None or one.status is status]
        return JobSelection(jobs=kept, unknown=unknown)

    return await deps.store.transact(work)


async def fetch(deps: Deps, origin: Origin, ids: Collection[str]) -> JobSelection:
    """Look at jobs and take the results that are there: whoever asks has read them."""

    def work(tx: Tx) -> JobSelection:
        return take(tx, origin, *find(tx, origin, ids))

    return await deps.store.transact(work)


async def have_settled(deps: Deps, origin: Origin, ids: Collection[str]) -> bool:
    return await deps.store.transact(lambda tx: are_settled(find(tx, origin, ids)[0]))


def are_settled(found: Sequence[Conversation]) -> bool:
    return all(jobs.is_settled(job) for job in found)


def read(tx: Tx, user: UserId, conversation_ids: Collection[ConversationId]) -> Sequence[JobView]:
    """Take the results of jobs that a run has waited for, as far as they are still there."""
    if not conversation_ids:
        return ()
    found = sorted(tx.jobs.load(user, conversation_ids).values(), key=lambda job: job.created_at)
    return _retrieve(tx, user, found)


def take(
    tx: Tx, origin: Origin, found: Sequence[Conversation], unknown: Sequence[str]
) -> JobSelection:
    """Note that the results of these are read now."""
    shown = _retrieve(tx, origin.user, found)
    ended = [one.id for one in shown if one.retrieved_at is not None]
    waiting = results_of(tx, origin.user, origin.conversation, ended)
    return JobSelection(jobs=shown, unknown=unknown, items=tuple(item.id for item in waiting))


def _retrieve(tx: Tx, user: UserId, found: Sequence[Conversation]) -> Sequence[JobView]:
    shown = views(tx, user, found)
    ended = {one.id for one in shown if one.status in (JobStatus.COMPLETED, JobStatus.ERROR)}
    tx.jobs.mark_retrieved(user, ended)
    return [
        replace(one, retrieved_at=one.retrieved_at or tx.now) if one.id in ended else one
        for one in shown
    ]


async def resume(deps: Deps, origin: Origin, which: str, message: str) -> JobView:
    """Give a completed job one more thing to do, where its agent remembers the first."""
    said = new_message_id()

    def work(tx: Tx) -> JobView:
        job = tx.conversations.lock(origin.user, _only(tx, origin, which).id)
        # Parents are locked after their children, as it is when a child reports.
        origin.hold(tx)
        if _was_said(tx, job, said):
            return _view(job)
        step = transitions.follow_up(job, message, message_id=said, now=tx.now)
        check_memory(deps, tx, job)
        save(tx, step)
        return _view(step.conversation)

    return await deps.store.transact(work)


def check_memory(deps: Deps, tx: Tx, job: Conversation) -> None:
    """Refuse to go on with a job whose agent's session is gone, where it has any."""
    engine, session = job.profile or deps.default_profile, job.session
    if engine in deps.injection_proof:
        # What follows rules has no memory to lose.
        return
    if session is None or session.profile != engine or session.tokens > deps.limits.context_chat:
        raise Conflict(JOB_SESSION_GONE, hint=JOB_SESSION_GONE_HINT)
    if not tx.jobs.has_session(job.user_id, job.id, session.id):
        raise Conflict(JOB_SESSION_GONE, hint=JOB_SESSION_GONE_HINT)


async def cancel(
    deps: Deps, origin: Origin, *, ids: Collection[str] | None = None, batch: str | None = None
) -> JobsChanged:
    """Stop jobs, with all that they handed out themselves; their parent is not told what it did."""
    if not ids and not batch:
        raise BadRequest("Which jobs are to be cancelled?", hint="Give their ids, or a batch.")
    done = list[ConversationId]()

    def work(tx: Tx) -> JobsChanged:
        found, unknown = find(tx, origin, ids, batch)
        # An earlier try may have gone through, and only its answer been lost.
        done.extend(job.id for job in found if lookup.is_open(job) and job.id not in done)
        for job in found:
            steps.stop_all(tx, job)
        origin.hold(tx)
        found, _ = find(tx, origin, ids, batch)
        shown = views(tx, origin.user, found)
        stopped = [one for one in shown if one.id in done and one.status is JobStatus.CANCELLED]
        left = [one for one in shown if one not in stopped]
        return JobsChanged(done=stopped, left=left, unknown=unknown)

    return await deps.store.transact(work)


async def clear(
    deps: Deps, origin: Origin, *, ids: Collection[str] | None = None, batch: str | None = None
) -> JobsChanged:
    """Remove jobs that have ended, with their results; what was done and spent stays known."""
    gone = dict[ConversationId, JobView]()

    def work(tx: Tx) -> JobsChanged:
        found, unknown = find(tx, origin, ids, batch)
        shown = views(tx, origin.user, found)
        for one in shown:
            if is_over(one):
                gone[one.id] = one
                remove(tx, origin.user, one.id)
        origin.hold(tx)
        known = [called for called in unknown if any(id_.startswith(called) for id_ in gone)]
        return JobsChanged(
            done=list(gone.values()),
            left=[one for one in shown if one.id not in gone],
            unknown=[called for called in unknown if called not in known],
        )

    return await deps.store.transact(work)


def is_over(job: JobView) -> bool:
    """See whether a job has ended for good, one way or the other."""
    return job.is_settled and job.status not in (JobStatus.RUNNING, JobStatus.RESUMED)


def views(tx: Tx, user: UserId, found: Sequence[Conversation]) -> Sequence[JobView]:
    """See conversations as jobs, with what is known of their runs."""
    work = tx.jobs.work_summaries(user, [job.id for job in found]) if found else {}
    return [_view(job, work[job.id]) for job in found]


def results_of(
    tx: Tx, user: UserId, parent: ConversationId, conversation_ids: Collection[ConversationId]
) -> Sequence[Item]:
    """Find what waits in the parent's inbox to tell of the results of jobs."""
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
    """Find the jobs that are meant, and what is no job here or could be several."""
    called = None if ids is None else [one.strip() for one in ids if one.strip()]
    found = tx.jobs.started_by(
        origin.user,
        origin.conversation,
        limit=MAX_JOBS_PER_CALL,
        ids=called or None,
        batch=batch or None,
    )
    if not called:
        return found, ()
    meant, unknown = dict[ConversationId, Conversation](), list[str]()
    for one in called:
        fitting = [job for job in found if job.id.startswith(one)]
        if len(fitting) == 1:
            meant[fitting[0].id] = fitting[0]
        else:
            unknown.append(f"{one} (several begin so)" if fitting else one)
    return list(meant.values()), unknown


def _only(tx: Tx, origin: Origin, which: str) -> Conversation:
    found, unknown = find(tx, origin, [which])
    if not which.strip() or unknown:
        raise unknown_jobs(unknown or [which])
    return found[0]


def unknown_jobs(which: Sequence[str]) -> NotFound:
    names = ", ".join(one[:80] for one in which)
    return NotFound(
        f"No job of this conversation is called {names}.",
        hint="background_list shows what there is.",
    )


def _view(job: Conversation, work: WorkSummary | None = None) -> JobView:
    view = job_view(job, work)
    if view is None:
        raise NotFound
    return view


def _brief(here: Conversation, wish: JobRequest, batch: str, root: ConversationId) -> Brief:
    return Brief(
        title=" ".join(wish.description.split()) or make_title(wish.prompt),
        prompt=wish.prompt,
        schedule=Immediate(),
        # Its parent is told, and tells whoever is to know.
        notify=Notify.NEVER,
        # What it hands out can do no more than it may itself, and asks where it does.
        tools=here.tools,
        profile=wish.agent or here.requested_profile,
        reports_to=here.reports_to,
        parent_id=here.id,
        root_id=root,
        batch=batch,
        created_by=Author.AGENT,
    )


def _new_batch(origin: Origin) -> str:
    return new_batch_id() if origin.turn is None else derive_batch_id(origin.turn.run_id)


def _ancestry(tx: Tx, here: Conversation) -> Sequence[Conversation]:
    """Go up from a conversation to the one that nothing handed out."""
    found = [here]
    with suppress(NotFound):
        while found[-1].parent_id is not None:
            found.append(tx.conversations.load(here.user_id, found[-1].parent_id))
    return found


def _asked_in(tx: Tx, origin: Origin) -> MessageId | None:
    """Find the message that the run answers; None: it answers none."""
    turn = origin.turn
    if turn is None:
        return None
    user, which = turn.user_id, turn.conversation_id
    served = tx.inbox.served_by(user, which, turn.run_id)
    items = [*served, *tx.inbox.waiting(user, which, turn.kind)]
    said = [item.content.get("message_id") for item in items if item.kind is ItemKind.MESSAGE]
    return MessageId(said[-1]) if said and said[-1] else None


def _was_said(tx: Tx, job: Conversation, said: MessageId) -> bool:
    """See whether an earlier try went through, and only its answer was lost."""
    with suppress(NotFound):
        tx.replies.message(job.user_id, job.id, said)
        return True
    return False
