"""Whether work may begin, or begin again: there is room, and what it comes after is there."""

from backburner.actions import chain
from backburner.actions.deps import Deps
from backburner.actions.steps import Change, save
from backburner.core.conversation import Conversation
from backburner.core.ids import ConversationId, UserId
from backburner.core.work import proposal, views
from backburner.ports import Tx


async def change(
    deps: Deps, user: UserId, conversation_id: ConversationId, transition: Change
) -> Conversation:
    """Let something happen to a conversation that may make it one more active task."""

    def work(tx: Tx) -> Conversation:
        # First, so that two at once cannot both be the last for whom there is room.
        tx.users.lock(user)
        found = tx.conversations.lock(user, conversation_id)
        step = transition(found, tx)
        check(deps, tx, step.conversation, before=found)
        save(tx, step)
        return step.conversation

    return await deps.store.transact(work)


def check(deps: Deps, tx: Tx, after: Conversation, *, before: Conversation | None = None) -> None:
    """Refuse what would be one task too many; whoever calls this holds the lock of the user."""
    if not views.counts_as_active(after) or (before is not None and views.counts_as_active(before)):
        return
    chain.check_predecessor(tx, after)
    others = [
        title or which for which, title in tx.tasks.active(after.user_id) if which != after.id
    ]
    proposal.check_task_limit(others, limit=deps.limits.most_tasks)
