"""Which profile a conversation works under, and which one helps out when that fails.

A profile is a named model. Chats have one; tasks, jobs and discovery may have another, often a
local one that costs nothing.
"""

from dataclasses import dataclass, replace

from backburner.core.conversation import Conversation, Kind
from backburner.core.errors import BadRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """The profiles there are by name, and who uses which."""

    names: tuple[str, ...] = ()
    #: What chats use, and everything else for which nothing else is said.
    chat: str = ""
    #: What tasks, jobs and discovery use; None: the same as chats.
    background: str | None = None


#: Every conversation gets the default where it runs.
NO_ROUTES = Routes()


def choose(routes: Routes, kind: Kind, wished: str | None = None) -> str:
    """Choose the profile of a new conversation; one that was asked for by name is what it gets."""
    if wished is not None:
        if wished not in routes.names:
            there_are = ", ".join(routes.names) or "none"
            raise BadRequest(f"There is no profile {wished!r}.", hint=f"There are: {there_are}.")
        return wished
    if kind is Kind.CHAT or routes.background is None:
        return routes.chat
    return routes.background


def assign(conversation: Conversation, routes: Routes) -> Conversation:
    """Give a conversation that is being born its profile, which it keeps."""
    engine = choose(routes, conversation.kind, conversation.requested_profile)
    return replace(conversation, profile=engine)


def escalate(routes: Routes, conversation: Conversation, *, escalated: bool) -> str | None:
    """Say under which profile a run that failed is tried once more; None: under no other.

    What was asked for by name is left there: who chose a local model may have had a reason.
    """
    is_routed = conversation.kind is not Kind.CHAT and conversation.requested_profile is None
    if escalated or not is_routed or conversation.profile != routes.background:
        return None
    return routes.chat if routes.chat != routes.background else None
