"""Background work with a schedule that is given as a value, as tests need it."""

from collections.abc import Sequence

from backburner.actions import active_limit, create
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.core import transitions
from backburner.core.conversation import Conversation, State
from backburner.core.ids import ConversationId, UserId, new_conversation_id
from backburner.core.schedule import Schedule
from backburner.core.tool_policy import Grant
from backburner.core.transitions import Brief
from backburner.ports import Tx


async def start_work(
    deps: Deps, user: UserId, brief: Brief, allowed: Sequence[Grant] = ()
) -> Conversation:
    """Start work that may do some things unasked from its beginning."""
    conversation_id = new_conversation_id()

    def work(tx: Tx) -> Conversation:
        tx.users.lock(user)
        started = create.start(tx, deps, Origin.by_user(user), conversation_id, brief)
        if allowed:
            tx.grants.give(user, conversation_id, allowed)
        return started

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
