"""Writes a step down, and lets those hear of it whom it concerns: parents and followers."""

from collections.abc import Callable, Collection

from backburner.actions import spending
from backburner.actions.deps import Deps
from backburner.core import transitions
from backburner.core.conversation import Conversation
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.core.question import Purpose
from backburner.core.run import RunKind, RunStatus
from backburner.core.transitions import Report, Step
from backburner.core.work import lookup
from backburner.ports import Tx

#: A run in progress is among the last few.
_RECENT_RUNS = 5
Change = Callable[[Conversation, Tx], Step]


async def change(
    deps: Deps, user: UserId, conversation_id: ConversationId, transition: Change
) -> Conversation:
    """Let something happen to a conversation."""

    def work(tx: Tx) -> Conversation:
        step = transition(tx.conversations.lock(user, conversation_id), tx)
        save(tx, step)
        return step.conversation

    return await deps.store.transact(work)


def save(tx: Tx, step: Step) -> None:
    tx.conversations.save(step)
    follow(tx, step)
    if step.withdrawn:
        user = step.conversation.user_id
        resume_without_answer(tx, user, tx.questions.purposes(user, step.withdrawn))


def resume_without_answer(tx: Tx, user: UserId, withdrawn: Collection[Purpose]) -> None:
    """Let work go on that waited for an answer which nobody will give now; it asks again."""
    if Purpose.ALLOWANCE in withdrawn:
        spending.free(tx, user, at=tx.now)


def follow(tx: Tx, step: Step) -> None:
    """Tell the parent what a child reports, and followers that it is their turn, or never will."""
    here = step.conversation
    if step.report is not None and here.parent_id is not None:
        _report(tx, here, here.parent_id, step.report)
    if step.signal is not None:
        for follower in tx.conversations.followers(here.user_id, here.id):
            heard = transitions.apply_follower_event(
                tx.conversations.lock(here.user_id, follower), step.signal
            )
            save(tx, heard)


def stop_all(tx: Tx, job: Conversation, *, by_parent: bool = True) -> bool:
    """Cancel what is still at work, and first whatever it has handed out; False: it was not.

    Children come first because that is the order in which they are locked.
    """
    for child in tx.conversations.open_children(job.user_id, job.id):
        stop_all(tx, child)
    found = tx.conversations.lock(job.user_id, job.id)
    if not lookup.is_open(found):
        return False
    save(tx, transitions.cancel(found, now=tx.now, by_parent=by_parent))
    return True


def is_running(tx: Tx, user: UserId, conversation_id: ConversationId) -> bool:
    """See whether a background run is under way, or was handed back."""
    return any(
        run.kind is RunKind.BACKGROUND and run.status in (RunStatus.RUNNING, RunStatus.QUEUED)
        for run in tx.runs.history(user, conversation_id, limit=_RECENT_RUNS)
    )


def _report(tx: Tx, child: Conversation, parent_id: ConversationId, report: Report) -> None:
    try:
        parent = tx.conversations.lock(child.user_id, parent_id)
    except NotFound:
        return
    awaited_by = tx.jobs.waiting_kind(child.user_id, parent_id, child.id)
    save(tx, transitions.receive_report(parent, child, report, awaited_by=awaited_by))
