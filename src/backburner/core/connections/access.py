"""Which connections of a user a conversation may use.

A chat has all of them, unless its user took some away. Other work has those that its brief names.
"""

from collections.abc import Collection, Iterable, Sequence

from backburner.core.connections.connection import Connection
from backburner.core.conversation import Conversation, Kind
from backburner.core.errors import BadRequest

#: The names of connections that work is restricted to; None: those of its kind.
Names = tuple[str, ...] | None


def may_use(conversation: Conversation, connection: Connection) -> bool:
    """Return whether a conversation may use a connection of its user."""
    is_owner = connection.user_id == conversation.user_id
    if not is_owner or connection.disabled or conversation.kind is Kind.DISCOVERY:
        return False
    if conversation.connections is not None:
        return connection.name in conversation.connections
    # What a token hands out has none unless they are named.
    is_own_chat = conversation.kind is Kind.CHAT and conversation.uses is None
    return is_own_chat and connection.in_chats


def has_any(conversation: Conversation) -> bool:
    """Return whether a conversation may use connections, if its user has some."""
    if conversation.kind is Kind.DISCOVERY:
        return False
    if conversation.connections is not None:
        return bool(conversation.connections)
    return conversation.kind is Kind.CHAT and conversation.uses is None


def usable(conversation: Conversation, connections: Iterable[Connection]) -> list[Connection]:
    return [connection for connection in connections if may_use(conversation, connection)]


def choose(
    named: Sequence[str] | None,
    *,
    existing: Iterable[Connection],
    parent: Conversation | None = None,
    given: Collection[str] | None = None,
) -> tuple[str, ...]:
    """Choose the connections of new work: those that its brief names, or none.

    They are among those of its parent, and among those that were `given` to the token that hands
    it out, if one does. Raises `BadRequest` for others.
    """
    may = [one for one in existing if parent is None or may_use(parent, one)]
    allowed = [one.name for one in may if given is None or one.name in given]
    wanted = tuple(dict.fromkeys(name.strip() for name in named or () if name.strip()))
    refused = [name for name in wanted if name not in allowed]
    if refused and parent is None and given is None:
        raise BadRequest(
            f"You have no connection {', '.join(name[:80] for name in refused)}.",
            hint="See `backburner connections`.",
        )
    if refused:
        raise BadRequest(
            f"This work may not use {', '.join(name[:80] for name in refused)}.",
            hint=f"It may use these connections: {', '.join(sorted(allowed)) or 'none'}.",
        )
    return wanted
