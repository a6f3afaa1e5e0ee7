"""Schedules that run after other work: valid predecessors, and no cycles."""

from contextlib import suppress
from dataclasses import replace

from backburner.core import schedule
from backburner.core.conversation import Conversation, Status
from backburner.core.errors import BadSchedule, Conflict, NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.core.schedule import After
from backburner.ports import Tx

MAX_CHAIN_LENGTH = 20


def resolve_after(
    tx: Tx, user: UserId, after: After, *, conversation_id: ConversationId | None
) -> After:
    """Check the predecessor of a schedule; after one-time work the schedule is one-time too.

    `conversation_id` is the conversation with the schedule, if it exists already. The caller holds
    the user lock, so a chain that was checked cannot change.
    """
    if after.conversation == conversation_id:
        raise BadSchedule("A conversation cannot run after itself.", hint="Name another one.")
    # Locked: a run that is just ending it would not find its follower.
    first = tx.conversations.lock(user, after.conversation)
    if first.status is Status.ARCHIVED:
        raise Conflict(f"{_name(first)} is archived: nothing can run after it.")
    if first.schedule is None:
        raise Conflict(
            f"{_name(first)} has no schedule, so nothing can run after it.",
            hint="Give it a schedule first.",
        )
    _refuse_cycle(tx, user, first, conversation_id)
    return replace(after, once=after.once or not schedule.is_recurring(first.schedule))


def check_predecessor(tx: Tx, work: Conversation) -> None:
    """Refuse to start work whose predecessor is archived or deleted."""
    if not isinstance(work.schedule, After):
        return
    with suppress(NotFound):
        if (
            tx.conversations.load(work.user_id, work.schedule.conversation).status
            is not Status.ARCHIVED
        ):
            return
    raise Conflict(
        "The work that this should run after no longer exists.", hint="Set another schedule."
    )


def _refuse_cycle(
    tx: Tx, user: UserId, first: Conversation, conversation_id: ConversationId | None
) -> None:
    chain = [first]
    while isinstance(before := chain[-1].schedule, After):
        if before.conversation == conversation_id:
            names = " runs after ".join(_name(link) for link in chain)
            raise BadSchedule(
                f"This would never start: {names}, which would run after it.",
                hint="Give one of them a time of its own.",
            )
        if len(chain) >= MAX_CHAIN_LENGTH:
            raise BadSchedule(
                f"Limit reached: {MAX_CHAIN_LENGTH} tasks in a chain.", hint="Shorten the chain."
            )
        chain.append(tx.conversations.load(user, before.conversation))


def _name(conversation: Conversation) -> str:
    return repr(conversation.title or conversation.id)
