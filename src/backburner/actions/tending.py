"""What people do with what has gathered: rename, delete, take back, put away."""

from collections.abc import Sequence
from dataclasses import replace

from backburner.actions.deps import Deps
from backburner.actions.steps import change, go_on_without, save
from backburner.core import tool_policy, transitions
from backburner.core.conversation import Conversation, Notify
from backburner.core.ids import ConversationId, GrantId, NoticeId, UserId
from backburner.core.transitions import FollowerEvent, Step
from backburner.ports import GrantRow, Tx


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
    go_on_without(tx, user, asked)


async def revoke(deps: Deps, user: UserId, grant_id: GrantId) -> None:
    """Take back a yes; what is under way with it is not undone."""
    await deps.store.transact(lambda tx: tx.grants.revoke(user, grant_id))


async def widen(deps: Deps, user: UserId, grant_id: GrantId, words: tuple[str, ...]) -> GrantRow:
    """Let a lasting grant for a command cover all that begins with fewer of its words."""

    def work(tx: Tx) -> GrantRow:
        given = tx.browse.grant(user, grant_id)
        # An earlier try may have gone through, and only its answer been lost.
        if given.grant.words != words:
            tx.grants.narrow(user, tool_policy.widen_grant(given.grant, words))
        return tx.browse.grant(user, grant_id)

    return await deps.store.transact(work)


async def see(deps: Deps, user: UserId, notice_ids: Sequence[NoticeId]) -> int:
    return await deps.store.transact(lambda tx: tx.notices.mark_seen(user, notice_ids))


async def see_until(deps: Deps, user: UserId, last: NoticeId) -> int:
    return await deps.store.transact(lambda tx: tx.notices.mark_seen_until(user, last))


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
