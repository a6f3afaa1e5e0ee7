"""Deletion that can be undone: a conversation is hidden at once, and removed a little later.

What is hidden is archived and without work, so that nothing is claimed in it. A crash in between
loses nothing: the chore of a worker finds it by the time when it was deleted.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial

from backburner.actions.conversations import pause_followers, remove_deleted, with_descendants
from backburner.actions.deps import Deps
from backburner.actions.steps import save
from backburner.core import transitions
from backburner.core.conversation import Conversation, EndedAs
from backburner.core.errors import Conflict, NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.ports import DeletedConversation, Tx

#: How long a deletion can be undone.
UNDO_TIME = timedelta(seconds=30)
#: Conversations removed at a time, each in a transaction of its own.
_BATCH = 20


async def delete(deps: Deps, user: UserId, conversation_id: ConversationId) -> None:
    """Hide a conversation with its jobs and child tasks, and end all their work."""

    def work(tx: Tx) -> None:
        # Not one that is hidden already.
        tx.conversations.load(user, conversation_id)
        # Parents are locked after their children, as when a child reports.
        hidden = _hide_all(tx, user, conversation_id, ())
        # Others may have started work in it before it was locked.
        hidden += _hide_all(tx, user, conversation_id, hidden)
        for hidden_id in hidden:
            pause_followers(tx, user, hidden_id, hidden)

    await deps.store.transact(work)


async def restore(deps: Deps, user: UserId, conversation_id: ConversationId) -> Conversation:
    """Show a deleted conversation again, with what was deleted with it. Its work stays stopped.

    A proposal is proposed again.
    """

    def work(tx: Tx) -> Conversation:
        deleted = tx.marks.lock_deleted(user, conversation_id)
        parent_id = deleted.conversation.parent_id
        is_below = parent_id is not None and tx.marks.is_deleted(user, parent_id)
        if deleted.deleted_with != conversation_id or is_below:
            raise Conflict(
                "The conversation that it belongs to was deleted as well.",
                hint="Restore that one.",
            )
        *below, _ = with_descendants(tx, user, conversation_id)
        for shown_id in below:
            if tx.marks.is_deleted(user, shown_id):
                _show(tx, tx.marks.lock_deleted(user, shown_id), root=conversation_id)
        return _show(tx, deleted, root=conversation_id)

    return await deps.store.transact(work)


async def remove_due(deps: Deps) -> bool:
    """Remove the conversations whose deletion cannot be undone any more; False: none are left."""
    due = await deps.store.read(
        lambda tx: tx.marks.deleted_before(tx.now - UNDO_TIME, limit=_BATCH)
    )
    for user, conversation_id in due:
        # It was restored, or removed with another one.
        with suppress(NotFound):
            await deps.store.transact(
                partial(_remove_due, user=user, conversation_id=conversation_id)
            )
    return len(due) == _BATCH


def _remove_due(tx: Tx, *, user: UserId, conversation_id: ConversationId) -> None:
    deleted = tx.marks.lock_deleted(user, conversation_id)
    if deleted.deleted_at <= tx.now - UNDO_TIME:
        remove_deleted(tx, user, conversation_id)


def _hide_all(
    tx: Tx, user: UserId, root: ConversationId, hidden: Sequence[ConversationId]
) -> list[ConversationId]:
    """Hide a conversation and what is below it, but for what is hidden already."""
    found = list[ConversationId]()
    for conversation_id in with_descendants(tx, user, root):
        if conversation_id in hidden or tx.marks.is_deleted(user, conversation_id):
            continue
        before = tx.conversations.lock(user, conversation_id)
        save(tx, transitions.hide(before, now=tx.now))
        tx.marks.hide(before, root=root)
        found.append(conversation_id)
    return found


def _show(tx: Tx, deleted: DeletedConversation, *, root: ConversationId) -> Conversation:
    """Show what was deleted with `root`; what was deleted before it stays so."""
    before = deleted.conversation
    if deleted.deleted_with != root:
        return before
    tx.marks.show(before.user_id, before.id)
    lost_work = before.ended_as is EndedAs.CANCELLED and before.ended_at == deleted.deleted_at
    step = transitions.show_again(
        before,
        was_archived=deleted.was_archived,
        proposed=tx.questions.unapproved_proposal(before.user_id, before.id),
        now=tx.now,
        lost_work=lost_work,
    )
    save(tx, step)
    return step.conversation
