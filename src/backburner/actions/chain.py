"""Work that comes after other work: what it may come after, and that no chain leads back."""

from contextlib import suppress
from dataclasses import replace

from backburner.core import schedule
from backburner.core.conversation import Conversation, Status
from backburner.core.errors import BadSchedule, Conflict, NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.core.schedule import After
from backburner.ports import Tx

MAX_CHAIN_LENGTH = 20


def resolve_after(tx: Tx, user: UserId, after: After, *, of: ConversationId | None) -> After:
    """See that work can come after that; after one-time work it is one-time too.

    `of` is the conversation whose work it is to be, if that is there. Whoever changes what comes
    after what holds the lock of the user, so a chain that was walked stays as it is.
    """
    if after.conversation == of:
        raise BadSchedule("A conversation cannot come after itself.", hint="Name another.")
    first = tx.conversations.load(user, after.conversation)
    if first.status is Status.ARCHIVED:
        raise Conflict(f"{_name(first)} is archived: nothing can come after it.")
    if first.schedule is None:
        raise Conflict(
            f"{_name(first)} has no work that something could come after.",
            hint="Give it a schedule first.",
        )
    _walk(tx, user, first, of)
    return replace(after, once=after.once or not schedule.is_recurring(first.schedule))


def check_predecessor(tx: Tx, work: Conversation) -> None:
    """Refuse to begin with work that comes after what is no longer there."""
    if not isinstance(work.schedule, After):
        return
    with suppress(NotFound):
        if (
            tx.conversations.load(work.user_id, work.schedule.conversation).status
            is not Status.ARCHIVED
        ):
            return
    raise Conflict("What this is to come after is no longer there.", hint="Give it another time.")


def _walk(tx: Tx, user: UserId, first: Conversation, of: ConversationId | None) -> None:
    """Follow what each comes after; refuse to get back to where it began."""
    chain = [first]
    while isinstance(before := chain[-1].schedule, After):
        if before.conversation == of:
            names = " comes after ".join(_name(one) for one in chain)
            raise BadSchedule(
                f"That would never begin: {names}, which would come after it.",
                hint="Let one of them run at a time of its own.",
            )
        if len(chain) >= MAX_CHAIN_LENGTH:
            raise BadSchedule(
                f"That is a chain of more than {MAX_CHAIN_LENGTH}.", hint="Make it shorter."
            )
        chain.append(tx.conversations.load(user, before.conversation))


def _name(conversation: Conversation) -> str:
    return repr(conversation.title or conversation.id)
