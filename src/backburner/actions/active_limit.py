"""The limits on active tasks, checked whenever work starts, resumes or is rescheduled."""

from backburner.actions import after_schedules
from backburner.actions.deps import Deps
from backburner.actions.steps import Change, save
from backburner.core.conversation import Conversation
from backburner.core.ids import ConversationId, UserId
from backburner.core.schedule import check_frequency
from backburner.core.work import proposal, views
from backburner.ports import Tx


async def change(
    deps: Deps, user: UserId, conversation_id: ConversationId, transition: Change
) -> Conversation:
    """Apply a transition, enforcing the limit on active tasks."""

    def work(tx: Tx) -> Conversation:
        # Locked first, so that two concurrent calls cannot both take the last free place.
        tx.users.lock(user)
        before = tx.conversations.lock(user, conversation_id)
        step = transition(before, tx)
        check(deps, tx, step.conversation, before=before)
        save(tx, step)
        return step.conversation

    return await deps.store.transact(work)


def check(deps: Deps, tx: Tx, after: Conversation, *, before: Conversation | None = None) -> None:
    """Refuse a task over the limit, too frequent, or without its predecessor.

    The caller holds the user lock.
    """
    is_new = before is None or before.schedule != after.schedule or before.profile != after.profile
    if is_new and after.schedule is not None and deps.can_be_injected(after.profile):
        check_frequency(after.schedule, deps.limits.min_interval)
    if not views.counts_as_active(after) or (before is not None and views.counts_as_active(before)):
        return
    after_schedules.check_predecessor(tx, after)
    others = [
        title or task_id for task_id, title in tx.tasks.active(after.user_id) if task_id != after.id
    ]
    proposal.check_task_limit(others, limit=deps.limits.max_tasks)
