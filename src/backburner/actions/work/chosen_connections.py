"""The connections that a conversation may use: chosen for new work, and changed later."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from backburner.actions import lookup
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.core import transitions
from backburner.core.connections import access
from backburner.core.conversation import Conversation, Kind
from backburner.core.ids import ConversationId, UserId
from backburner.ports import Tx

#: Refuses a caller who may not consent to more for the work of a conversation.
CheckConsent = Callable[[Tx, ConversationId], None]


def choose(
    tx: Tx, origin: Origin, named: Sequence[str] | None, *, here: Conversation | None
) -> tuple[str, ...]:
    """Choose the connections of new work, among those of its parent and of its token."""
    if not named:
        return ()
    tx.connections.hold(origin.user, named)
    existing = tx.connections.list(origin.user)
    return access.choose(named, existing=existing, parent=here, given=origin.connections)


def for_chat(
    tx: Tx, user: UserId, named: Sequence[str] | None, *, given: frozenset[str] | None
) -> tuple[str, ...] | None:
    """Choose the connections of a new chat; None: those of its kind."""
    if named is None:
        return None if given is None else pass_on(tx, user, sorted(given))
    tx.connections.hold(user, named)
    return access.choose(named, existing=tx.connections.list(user), given=given)


def pass_on(tx: Tx, user: UserId, names: Iterable[str]) -> tuple[str, ...]:
    """Return those of the names that are given to other work and have not been removed since."""
    held = tx.connections.hold(user, wanted := tuple(names))
    return tuple(name for name in wanted if name in held)


def rechoose(
    tx: Tx,
    origin: Origin,
    work: Conversation,
    named: Sequence[str] | None,
    *,
    here: Conversation | None,
    check_consent: CheckConsent | None = None,
) -> tuple[str, ...] | None:
    """Choose other connections for existing work. To give it more is to consent.

    None: those of its kind.
    """
    tx.connections.hold(origin.user, named or ())
    # A disabled one is enabled later, without a look at who may use it.
    existing = [replace(one, disabled=False) for one in tx.connections.list(origin.user)]
    parent = here
    if parent is None and work.kind is Kind.JOB:
        parent = next((one for one in lookup.ancestry(tx, work) if one.id != work.id), None)
    chosen = (
        None
        if named is None
        else access.choose(named, existing=existing, parent=parent, given=origin.connections)
    )
    before = {one.name for one in access.usable(work, existing)}
    changed = replace(work, connections=chosen)
    after = {one.name for one in access.usable(changed, existing)}
    if check_consent is not None and after - before:
        check_consent(tx, work.id)
    return chosen


async def change(
    deps: Deps,
    user: UserId,
    conversation_id: ConversationId,
    named: Sequence[str] | None,
    *,
    check_consent: CheckConsent,
) -> Conversation:
    """Change the connections of a conversation, for its user; None: those of its kind."""

    def work(tx: Tx) -> Conversation:
        before, origin = tx.conversations.lock(user, conversation_id), Origin.by_user(user)
        chosen = rechoose(tx, origin, before, named, here=None, check_consent=check_consent)
        step = transitions.apply_change(before, replace(before, connections=chosen), now=tx.now)
        is_other_work = before.kind is Kind.TASK and chosen != before.connections
        tx.conversations.save(replace(step, ends_all_grants=is_other_work))
        return step.conversation

    return await deps.store.transact(work)
