"""Background work with a schedule that is given as a value, as tests need it."""

from backburner.actions import active_limit, create
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.core import transitions
from backburner.core.conversation import Conversation, State
from backburner.core.ids import ConversationId, UserId, new_conversation_id
from backburner.core.schedule import Schedule
from backburner.core.transitions import Brief
from backburner.ports import Tx


async def start_work(deps: Deps, user: UserId, brief: Brief) -> Conversation:
    conversation_id = new_conversation_id()

    def work(tx: Tx) -> Conversation:
        tx.users.lock(user)
        return create.start(tx, deps, Origin.by_user(user), conversation_id, brief)

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
        lambda conversation, tx: transitions.set_schedule(
            conversation, schedule, now=tx.now, state=state
        ),
    )
