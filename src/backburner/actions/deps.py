"""What the actions work with; app puts it together."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import IO

from backburner.core.allowance import Allowance, Amount, Price
from backburner.core.errors import Conflict
from backburner.core.ids import ConversationId, UserId
from backburner.core.passwords import DEFAULT_HASH_COST, HashCost
from backburner.core.routing import NO_ROUTES, Routes
from backburner.ports import (
    Bus,
    Channel,
    DraftBroadcast,
    DraftEvent,
    DraftListener,
    Engine,
    ReplyDraft,
    Store,
    Toolbox,
)

DEFAULT_RESERVATION = Amount(micros=250_000, tokens=50_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long things may take, and how much of what there may be."""

    run_timeout: timedelta = timedelta(minutes=5)
    #: How long a person waits for a run in the way that comes to no tool call.
    patience: timedelta = timedelta(seconds=3)
    #: How long an engine has to end when it is told to.
    last_words: timedelta = timedelta(seconds=10)
    #: And when the process is about to go: what it did has to be handed back before.
    last_words_leaving: timedelta = timedelta(seconds=2)
    #: How long an agent's session may become, in tokens, before work in the background begins a new
    #: one, and before a reply does.
    context: int = 16_000
    context_chat: int = 100_000
    #: What a run sets aside of an allowance, as long as there is as much.
    slice: Amount = DEFAULT_RESERVATION
    #: Active tasks of one user.
    most_tasks: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverySettings:
    """Whether agents may look for work by themselves here, and how often."""

    allowed: bool = False
    every: timedelta = timedelta(minutes=30)
    #: How long a user has to be silent before.
    after: timedelta = timedelta(minutes=10)

    @property
    def looks_after(self) -> timedelta | None:
        return self.after if self.allowed else None


async def no_repository(_user: UserId) -> str:
    return ""


async def no_files(_user: UserId) -> None:
    pass


async def no_copy() -> IO[bytes]:
    raise Conflict("This database cannot be copied from here.")


class NoDrafts:
    """For processes in which nobody watches runs."""

    def publish(self, user: UserId, conversation_id: ConversationId, event: DraftEvent) -> None:
        pass

    def listen(self, _listener: DraftListener) -> AbstractContextManager[None]:
        return nullcontext()

    def replies(self, _user: UserId) -> tuple[ReplyDraft, ...]:
        return ()


NO_DRAFTS = NoDrafts()


def no_price(_model: str) -> Price | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deps:
    store: Store
    #: Where hints come from; without it, this process only looks from time to time.
    bus: Bus | None = None
    #: By the name of the profile; a conversation without one gets the default.
    engines: Mapping[str, Engine]
    default_profile: str
    toolbox: Toolbox
    #: Engines that nothing they read can put up to anything.
    injection_proof: frozenset[str] = frozenset()
    #: Profiles whose agent is Claude Code.
    claude: frozenset[str] = frozenset()
    #: Which profile a new conversation gets.
    routes: Routes = NO_ROUTES
    channels: Mapping[str, Channel] = field(default_factory=dict)
    #: Text of runs in this process, for those who watch from it.
    drafts: DraftBroadcast = NO_DRAFTS
    limits: Limits = Limits()
    password_cost: HashCost = DEFAULT_HASH_COST
    #: What may be spent where nothing else was said.
    allowances: tuple[Allowance, ...] = ()
    #: Finds the price of a model; None if it is unknown.
    price_of: Callable[[str], Price | None] = no_price
    discovery: DiscoverySettings = DiscoverySettings()
    #: Tells the state of the repository that a user's workspace is, if it is one.
    look_at_repository: Callable[[UserId], Awaitable[str]] = no_repository
    #: Removes what a user has in files on this machine.
    remove_files: Callable[[UserId], Awaitable[None]] = no_files
    #: Copies the whole database to a file that is gone once it is closed.
    copy_database: Callable[[], Awaitable[IO[bytes]]] = no_copy

    def can_be_injected(self, profile: str) -> bool:
        """See whether what an agent reads may put it up to something; empty: the default one."""
        return (profile or self.default_profile) not in self.injection_proof
