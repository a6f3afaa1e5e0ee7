"""Routing: the profile that a conversation uses, and the fallback if that fails.

A profile is a named model configuration. Chats use one; tasks, jobs and discovery may use another,
often a local model that costs nothing.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from backburner.core.conversation import Conversation, Kind
from backburner.core.errors import BadRequest
from backburner.core.run import Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """The names of all profiles, and the default ones by use."""

    names: tuple[str, ...] = ()
    #: The profile of chats, and the default.
    chat: str = ""
    #: The profile of tasks, jobs and discovery; None for the same as chats.
    background: str | None = None


#: Every conversation gets the server's default profile.
NO_ROUTES = Routes()


def choose(routes: Routes, kind: Kind, requested: str | None = None) -> str:
    """Choose the profile of a new conversation: the requested one, or the default for its kind."""
    if requested is not None:
        return require(routes, requested)
    if kind is Kind.CHAT or routes.background is None:
        return routes.chat
    return routes.background


def require(routes: Routes, name: str) -> str:
    """Refuse the name of a profile that does not exist."""
    if name not in routes.names:
        names = ", ".join(routes.names) or "none"
        raise BadRequest(f"There is no profile {name!r}.", hint=f"Available: {names}.")
    return name


def assign(conversation: Conversation, routes: Routes) -> Conversation:
    """Set the profile of a conversation, which keeps it until the user changes it."""
    profile = choose(routes, conversation.kind, conversation.requested_profile)
    return replace(conversation, profile=profile)


def requested_for(items: Iterable[Item]) -> str | None:
    """Return the profile that messages ask for, for their reply only; the last one counts."""
    names = [item.content["profile"] for item in items if item.content.get("profile")]
    return str(names[-1]) if names else None


def profile_after_demo(
    conversation: Conversation, routes: Routes, demos: Collection[str]
) -> str | None:
    """Return the profile of work that began with the demo, once a model is set up; else None.

    A user who asked for the demo by name keeps it.
    """
    if conversation.requested_profile is not None or conversation.profile not in demos:
        return None
    profile = choose(routes, conversation.kind)
    return None if profile in demos else profile


def escalate(routes: Routes, conversation: Conversation, *, escalated: bool) -> str | None:
    """Return the fallback profile for a failed run; None if there is none.

    There is no fallback for a profile requested by name: the user may have had a reason to choose
    a local model.
    """
    is_routed = conversation.kind is not Kind.CHAT and conversation.requested_profile is None
    if escalated or not is_routed or conversation.profile != routes.background:
        return None
    return routes.chat if routes.chat != routes.background else None
