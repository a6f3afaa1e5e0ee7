"""The machines: made as the settings ask for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from backburner.core.conversation import Conversation
from backburner.core.ids import UserId
from backburner.core.routing import NO_ROUTES, Routes
from backburner.core.run import Turn
from backburner.ports import Channel, Engine, Offer, Store, Toolbox
from backburner.settings import Settings
from backburner.tools.toolbox import no_workspace


class NoTools:
    """Until the actions are there that the tools are made of."""

    async def offers(self, turn: Turn, conversation: Conversation) -> Sequence[Offer]:
        del turn, conversation
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """What the actions reach the outside with, apart from the database."""

    engines: Mapping[str, Engine] = field(default_factory=dict)
    default_engine: str = ""
    #: The most runs at the same time, for each engine that has a limit of its own.
    seats: Mapping[str, int] = field(default_factory=dict)
    #: Which profile a new conversation gets; names of profiles are names of engines.
    routes: Routes = NO_ROUTES
    #: In place of the tools that agents are offered.
    toolbox: Toolbox | None = None
    #: The files and commands of a user, as tools.
    workspace: Callable[[UserId], Sequence[Offer]] = no_workspace
    channels: Mapping[str, Channel] = field(default_factory=dict)
    #: What the actions see of the database; something may stand in between.
    store: Callable[[Store], Store] = lambda store: store


def build_machines(settings: Settings) -> Machines:
    """Make what the settings ask for: for each profile an engine, and who uses which."""
    return Machines(
        default_engine=settings.routes.chat, seats=settings.seats, routes=settings.routes
    )
