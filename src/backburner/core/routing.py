"""Routing: the profile that a conversation uses, and the fallback if that fails.

A profile is a named model configuration. Chats use one; tasks, jobs and discovery may use another,
often a local model that costs nothing.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from backburner.core.conversation import Conversation, Kind
from backburner.core.errors import BadRequest, BadSchedule
from backburner.core.run import Item, RunKind
from backburner.core.schedule import check_frequency


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


@dataclass(frozen=True, slots=True)
class ProfileFilter:
    """Matches conversations whose next run uses one of the profiles.

    Also those of the kinds that may leave one of the demos for such a profile.
    """

    profiles: tuple[str, ...] = ()
    demos: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()


NO_PROFILES = ProfileFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterDemo:
    """Where work that began with the demo continues, once a model is set up."""

    demos: frozenset[str] = frozenset()
    routes: Routes = NO_ROUTES
    #: Work that repeats more often stays with the demo.
    min_interval: timedelta = timedelta()

    def match(self, profiles: Collection[str]) -> ProfileFilter:
        """Make the filter for conversations whose next run uses one of these profiles."""
        if not profiles:
            return NO_PROFILES
        names, demos = tuple(sorted(profiles)), tuple(sorted(self.demos))
        targets = {kind: choose(self.routes, kind) for kind in Kind if demos}
        kinds = (kind for kind, to in targets.items() if to in names and to not in demos)
        return ProfileFilter(names, demos, tuple(kinds))


#: Work that began with the demo stays there.
NO_EXIT = AfterDemo()


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


def requested_by(items: Iterable[Item]) -> str:
    """Return the profile that messages ask for, for their run only; the last one counts."""
    names = [item.content["profile"] for item in items if item.content.get("profile")]
    return str(names[-1]) if names else ""


def request_for(conversation: Conversation, kind: RunKind) -> str:
    """Return the profile that messages ask for, for the next run of a kind; empty: none."""
    return conversation.reply_profile if kind is RunKind.REPLY else conversation.work_profile


def with_request(conversation: Conversation, kind: RunKind, profile: str) -> Conversation:
    """Set the profile of the next run of a kind; empty: that of the conversation."""
    if kind is RunKind.REPLY:
        return replace(conversation, reply_profile=profile)
    return replace(conversation, work_profile=profile)


def next_profile(
    conversation: Conversation, kind: RunKind, after_demo: AfterDemo, *, resumed: bool = False
) -> str:
    """Return the profile of the next run of a kind; `resumed`: it was handed back before."""
    if requested := request_for(conversation, kind):
        return requested
    # A run that was handed back goes on in its session.
    moved_to = None if resumed else profile_after_demo(conversation, after_demo)
    return conversation.profile if moved_to is None else moved_to


def profile_after_demo(conversation: Conversation, after_demo: AfterDemo) -> str | None:
    """Return the profile of work that began with the demo, once a model is set up; else None.

    A user who asked for the demo by name keeps it, and so does work that repeats too often.
    """
    demos = after_demo.demos
    if conversation.requested_profile is not None or conversation.profile not in demos:
        return None
    profile = choose(after_demo.routes, conversation.kind)
    if profile in demos:
        return None
    if conversation.schedule is not None:
        try:
            check_frequency(conversation.schedule, after_demo.min_interval)
        except BadSchedule:
            return None
    return profile


def escalate(routes: Routes, conversation: Conversation, *, escalated: bool) -> str | None:
    """Return the fallback profile for a failed run; None if there is none.

    There is no fallback for a profile requested by name: the user may have had a reason to choose
    a local model.
    """
    is_routed = conversation.kind is not Kind.CHAT and conversation.requested_profile is None
    if escalated or not is_routed or conversation.profile != routes.background:
        return None
    return routes.chat if routes.chat != routes.background else None
