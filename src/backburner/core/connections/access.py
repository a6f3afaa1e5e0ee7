"""Which connections of a user a conversation may use.

A chat has all of them, unless its user took some away. Other work has those that its brief names.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from backburner.core.connections.connection import Connection, ConnectionState
from backburner.core.conversation import Conversation, Kind
from backburner.core.errors import BadRequest

#: The names of connections that work is restricted to; None: those of its kind.
Names = tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """The connections that the brief of work names, and that it cannot use now."""

    #: Their owner has to sign in, for the first time or again.
    signed_out: tuple[Connection, ...] = ()
    disabled: tuple[Connection, ...] = ()
    #: The names of those that were removed.
    gone: tuple[str, ...] = ()

    @property
    def unusable(self) -> dict[str, str]:
        """Why those cannot be used that no sign-in brings back, by their names."""
        removed = {name: f"There is no connection {name} any more." for name in self.gone}
        return removed | {
            one.name: f"{one.name} is disabled. Enable it with"
            f" `backburner connections enable {one.name}`, then try again."
            for one in self.disabled
        }

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the owner of work that lacks them."""
        return (
            *(
                f"{one.name} is not signed in: the work waits for that. Sign in with"
                f" `backburner connect {one.name}`."
                for one in self.signed_out
            ),
            *(
                f"{one.name} is disabled: the work asks first. Enable it with"
                f" `backburner connections enable {one.name}`."
                for one in self.disabled
            ),
        )


NOTHING_LACKING = Lacking()


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


def named(conversation: Conversation) -> tuple[str, ...]:
    """Return the connections that the brief of work names; a chat is not about any of them."""
    is_work = conversation.kind in (Kind.TASK, Kind.JOB)
    return conversation.connections or () if is_work else ()


def find_lacking(
    conversation: Conversation,
    existing: Iterable[Connection],
    *,
    besides: Collection[str] = (),
) -> Lacking:
    """Find what work lacks of the connections that its brief names, `besides` those."""
    known = {one.name: one for one in existing}
    wanted = [name for name in named(conversation) if name not in besides]
    found = [known[name] for name in wanted if name in known]
    return Lacking(
        signed_out=tuple(
            one for one in found if one.state is not ConnectionState.READY and not one.disabled
        ),
        disabled=tuple(one for one in found if one.disabled),
        gone=tuple(name for name in wanted if name not in known),
    )


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
    # A disabled one may be named: its owner is told, and may enable it.
    may = [
        one for one in existing if parent is None or may_use(parent, replace(one, disabled=False))
    ]
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
