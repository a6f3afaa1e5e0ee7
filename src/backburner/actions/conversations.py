"""What people do with background work: begin, schedule, pause, resume, run now, cancel, archive."""

from backburner.actions import active_limit, create, steps
from backburner.actions.deps import Deps
from backburner.actions.steps import change, save
from backburner.core import transitions
from backburner.core.conversation import Conversation, State
from backburner.core.ids import ConversationId, UserId, new_conversation_id
from backburner.core.run import RunKind, RunStatus
from backburner.core.schedule import Schedule
from backburner.core.transitions import Brief, Step
from backburner.ports import Tx

#: A run that is under way is among the last few.
_FEW = 5


async def start(deps: Deps, user: UserId, brief: Brief) -> Conversation:
    """Set up work with a schedule."""

    which = new_conversation_id()

    def work(tx: Tx) -> Conversation:
        tx.users.lock(user)
        return create.begin(tx, deps, user, which, brief)

    return await deps.store.transact(work)


async def set_schedule(
    deps: Deps,
    user: UserId,
    conversation_id: ConversationId,
    schedule: Schedule,
    *,
    state: State | None = None,
) -> Conversation:
    return await active_limit.change(
        deps,
        user,
        conversation_id,
        lambda found, tx: transitions.set_schedule(found, schedule, now=tx.now, state=state),
    )


async def pause(deps: Deps, user: UserId, conversation_id: ConversationId) -> Conversation:
    return await change(deps, user, conversation_id, lambda found, _: transitions.pause(found))


async def resume(deps: Deps, user: UserId, conversation_id: ConversationId) -> Conversation:
    return await active_limit.change(
        deps, user, conversation_id, lambda found, tx: transitions.resume(found, now=tx.now)
    )


async def run_now(deps: Deps, user: UserId, conversation_id: ConversationId) -> Conversation:
    return await change(deps, user, conversation_id, lambda found, _: transitions.run_now(found))


async def cancel(deps: Deps, user: UserId, conversation_id: ConversationId) -> Conversation:
    def transition(found: Conversation, tx: Tx) -> Step:
        return transitions.cancel(found, now=tx.now, running=is_running(tx, user, conversation_id))

    return await change(deps, user, conversation_id, transition)


async def archive(deps: Deps, user: UserId, conversation_id: ConversationId) -> Conversation:
    """Close a conversation; what it handed out and is still at work is cancelled."""
    tried = dict[ConversationId, str]()

    def work(tx: Tx) -> Conversation:
        # Parents are locked after their children, as it is when a child reports.
        _stop_children(tx, user, conversation_id, tried)
        found = tx.conversations.lock(user, conversation_id)
        _stop_children(tx, user, conversation_id, tried)
        step = transitions.archive(found, now=tx.now, stopped=list(tried.values()))
        save(tx, step)
        return step.conversation

    return await deps.store.transact(work)


async def reopen(deps: Deps, user: UserId, conversation_id: ConversationId) -> Conversation:
    return await change(deps, user, conversation_id, lambda found, _: transitions.reopen(found))


async def pause_everything(deps: Deps, user: UserId | None, *, paused: bool) -> None:
    """Let all background work stand still or go on: a user's, or everybody's."""
    await deps.store.transact(lambda tx: tx.users.pause_everything(user, paused=paused))


def _stop_children(
    tx: Tx, user: UserId, conversation_id: ConversationId, stopped: dict[ConversationId, str]
) -> None:
    for child in tx.conversations.open_children(user, conversation_id):
        steps.stop_all(tx, child)
        stopped[child.id] = child.title


def is_running(tx: Tx, user: UserId, conversation_id: ConversationId) -> bool:
    """See whether a background run is under way, or was handed back."""
    return any(
        run.kind is RunKind.BACKGROUND and run.status in (RunStatus.RUNNING, RunStatus.QUEUED)
        for run in tx.runs.history(user, conversation_id, limit=_FEW)
    )
