"""Conversations: rename, archive, reopen, delete; and the switch for all background work."""

from collections.abc import Sequence
from dataclasses import replace

from backburner.actions import steps
from backburner.actions.deps import Deps
from backburner.actions.steps import change, save
from backburner.core import transitions
from backburner.core.conversation import Conversation, Notify
from backburner.core.ids import ConversationId, UserId
from backburner.core.transitions import FollowerEvent, Step
from backburner.ports import Tx


async def amend(
    deps: Deps,
    user: UserId,
    conversation_id: ConversationId,
    *,
    title: str | None = None,
    notify: Notify | None = None,
) -> Conversation:
    """Give a conversation another title, or another way to tell of its work."""

    def transition(found: Conversation, tx: Tx) -> Step:
        named = found if title is None else transitions.rename(found, title).conversation
        amended = replace(named, notify=found.notify if notify is None else notify)
        return transitions.apply_change(found, amended, now=tx.now)

    return await change(deps, user, conversation_id, transition)


async def delete(deps: Deps, user: UserId, conversation_id: ConversationId) -> None:
    """Delete a conversation with all that it handed out; what was done and spent stays known."""
    await deps.store.transact(lambda tx: remove(tx, user, conversation_id))


def remove(tx: Tx, user: UserId, conversation_id: ConversationId) -> None:
    tx.conversations.lock(user, conversation_id)
    all_of_them = _family(tx, user, conversation_id)
    asked = {
        asked.purpose for one in all_of_them for asked in tx.conversations.load(user, one).questions
    }
    for one in all_of_them:
        _part(tx, user, one, all_of_them)
    for one in all_of_them:
        tx.conversations.delete(user, one)
    steps.resume_without_answer(tx, user, asked)


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


def _family(tx: Tx, user: UserId, conversation_id: ConversationId) -> Sequence[ConversationId]:
    """Find all that hangs under a conversation, the lowest first."""
    under = [
        one
        for child in tx.conversations.children(user, conversation_id)
        for one in _family(tx, user, child)
    ]
    return [*under, conversation_id]


def _part(tx: Tx, user: UserId, gone: ConversationId, all_gone: Sequence[ConversationId]) -> None:
    """Let those pause, and say so, that were to come after one that goes."""
    for follower in tx.conversations.followers(user, gone):
        if follower not in all_gone:
            save(
                tx,
                transitions.apply_follower_event(
                    tx.conversations.lock(user, follower), FollowerEvent.GONE
                ),
            )
