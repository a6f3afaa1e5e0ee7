"""What keeps work from being done, in words for its user."""

from collections.abc import Iterable, Mapping, Sequence

from backburner.core.connections import access
from backburner.core.conversation import Conversation
from backburner.core.ids import ConversationId, UserId
from backburner.ports import Tx


def warnings_for(
    tx: Tx, user: UserId, conversations: Iterable[Conversation]
) -> Mapping[ConversationId, Sequence[str]]:
    """Say which connections open work names and cannot use now. Without any, nothing is read."""
    named = [one for one in conversations if one.schedule is not None and access.named(one)]
    existing = tx.connections.list(user) if named else ()
    return {one.id: access.find_lacking(one, existing).warnings for one in named}
