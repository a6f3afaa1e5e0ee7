"""Saves steps, and propagates them to parents and followers."""

from collections.abc import Callable, Collection

from backburner.actions import spending
from backburner.actions.deps import Deps
from backburner.actions.waits import inputs, reconnection
from backburner.core import transitions
from backburner.core.conversation import Conversation, Status
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.core.question import Purpose
from backburner.core.run import RunKind, RunStatus
from backburner.core.transitions import Report, Step, Stops
from backburner.core.work import lookup
from backburner.ports import Tx

#: A run in progress is among the last few.
_RECENT_RUNS = 5
Change = Callable[[Conversation, Tx], Step]


async def change(
    deps: Deps, user: UserId, conversation_id: ConversationId, transition: Change
) -> Conversation:
    def work(tx: Tx) -> Conversation:
        step = transition(tx.conversations.lock(user, conversation_id), tx)
        save(tx, step)
        return step.conversation

    return await deps.store.transact(work)


def save(tx: Tx, step: Step) -> None:
    tx.conversations.save(step)
    propagate(tx, step)
    if step.withdrawn:
        user = step.conversation.user_id
        purposes = tx.questions.purposes(user, step.withdrawn)
        if purposes & {Purpose.IN_DOUBT, Purpose.INPUT}:
            # A reply that was handed back for an answer goes on without it.
            tx.runs.resume_waiting(user, step.conversation.id, at=tx.now)
        resume_without_answer(tx, user, purposes)
    if step.conversation.status is Status.ARCHIVED:
        inputs.forget_conversation(tx, step.conversation.user_id, step.conversation.id)
    elif step.withdrawn or step.drops_queued or step.stops is not Stops.NOTHING:
        inputs.forget_unused(tx, step.conversation.user_id, step.conversation.id)


def resume_without_answer(tx: Tx, user: UserId, withdrawn: Collection[Purpose]) -> None:
    """Resume work whose question was withdrawn, or let other work that waits ask it."""
    if Purpose.ALLOWANCE in withdrawn:
        spending.resume_paused(tx, user, at=tx.now)
    if Purpose.RECONNECT in withdrawn:
        reconnection.ask_anew(tx, user)


def propagate(tx: Tx, step: Step) -> None:
    """Deliver the report of a step to the parent, and its signal to the followers."""
    here = step.conversation
    if step.report is not None and here.parent_id is not None:
        _report(tx, here, here.parent_id, step.report)
    if step.signal is not None:
        for follower in tx.conversations.followers(here.user_id, here.id):
            conversation = tx.conversations.lock(here.user_id, follower)
            save(tx, transitions.apply_follower_event(conversation, step.signal))


def stop_all(tx: Tx, work: Conversation, *, by_parent: bool = True) -> bool:
    """Cancel open work and its children; False: it was not open.

    Children come first because they are locked before their parents.
    """
    for child in tx.conversations.open_children(work.user_id, work.id):
        stop_all(tx, child)
    conversation = tx.conversations.lock(work.user_id, work.id)
    if not lookup.is_open(conversation):
        return False
    save(tx, transitions.cancel(conversation, now=tx.now, by_parent=by_parent))
    return True


def is_running(tx: Tx, work: Conversation) -> bool:
    """Check for a background run that is running or queued."""
    return has_run(tx, work, RunKind.BACKGROUND, RunStatus.RUNNING, RunStatus.QUEUED)


def has_run(tx: Tx, conversation: Conversation, kind: RunKind, *statuses: RunStatus) -> bool:
    return any(
        run.kind is kind and run.status in statuses
        for run in tx.runs.history(conversation.user_id, conversation.id, limit=_RECENT_RUNS)
    )


def _report(tx: Tx, child: Conversation, parent_id: ConversationId, report: Report) -> None:
    try:
        parent = tx.conversations.lock(child.user_id, parent_id)
    except NotFound:
        return
    awaited_by = tx.jobs.waiting_kind(child.user_id, parent_id, child.id)
    save(tx, transitions.receive_report(parent, child, report, awaited_by=awaited_by))
