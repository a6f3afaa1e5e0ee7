"""The machines: made as the settings ask for them, and closed when the program ends."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path

from backburner.actions.deps import no_repository
from backburner.app.engines import build_engine, closing
from backburner.app.repository import look_at
from backburner.core.conversation import Conversation
from backburner.core.errors import BadSetting
from backburner.core.ids import UserId
from backburner.core.routing import NO_ROUTES, Routes
from backburner.core.run import Turn
from backburner.gateway.network import CheckedNetwork
from backburner.ports import Channel, Engine, Offer, Shell, Store, Toolbox
from backburner.process.confinement import confine_to
from backburner.process.memory import free_memory
from backburner.process.shell import ConfinedShell
from backburner.settings import Settings
from backburner.tools.toolbox import no_workspace
from backburner.tools.workspace import workspace_offers

#: What the program of one Claude takes, in bytes, and what is left to everything else.
ONE_CLAUDE = 250 * 2**20
RESERVE = 250 * 2**20


class NoTools:
    """Until the actions are there that the tools are made of."""

    async def offers(self, turn: Turn, conversation: Conversation) -> Sequence[Offer]:
        del turn, conversation
        return ()


async def nothing_to_close() -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """What the actions reach the outside with, apart from the database."""

    engines: Mapping[str, Engine] = field(default_factory=dict)
    default_profile: str = ""
    #: The most runs at the same time, for each engine that has a limit of its own.
    seats: Mapping[str, int] = field(default_factory=dict)
    #: Whether there is room for one more run with an engine, beside so many.
    has_room: Callable[[str, int], bool] = lambda _name, _runs: True
    #: Which profile a new conversation gets; names of profiles are names of engines.
    routes: Routes = NO_ROUTES
    #: Engines that nothing they read can put up to anything.
    injection_proof: frozenset[str] = frozenset()
    #: Profiles whose agent is Claude Code.
    claude: frozenset[str] = frozenset()
    #: In place of the tools that agents are offered.
    toolbox: Toolbox | None = None
    #: The files and commands of a user, as tools.
    workspace: Callable[[UserId], Sequence[Offer]] = no_workspace
    #: The state of the repository that a user's workspace is, if it is one.
    repository: Callable[[UserId], Awaitable[str]] = no_repository
    channels: Mapping[str, Channel] = field(default_factory=dict)
    #: What the actions see of the database; something may stand in between.
    store: Callable[[Store], Store] = lambda store: store
    close: Callable[[], Awaitable[None]] = nothing_to_close


def build_machines(settings: Settings) -> Machines:
    """Make what the settings ask for: for each profile an engine, and the tools of a workspace."""
    _check_hidden(settings)
    profiles = settings.profiles.values()
    engines = {profile.name: build_engine(profile, settings) for profile in profiles}
    shell = _shell(settings)
    large = {profile.name for profile in profiles if profile.engine == "claude"}
    return Machines(
        engines=engines,
        default_profile=settings.routes.chat,
        seats=settings.seats,
        has_room=lambda name, runs: name not in large or _fits_one_more(engines[name], runs),
        routes=settings.routes,
        injection_proof=frozenset(one.name for one in profiles if one.engine == "demo"),
        claude=frozenset(large),
        workspace=_workspaces(settings, shell),
        repository=_repositories(settings, shell),
        close=closing(engines.values()),
    )


def _shell(settings: Settings) -> Shell:
    names = settings.command_env
    return ConfinedShell(
        readable=settings.readable,
        variables={name: os.environ[name] for name in names if name in os.environ},
        unconfined=settings.commands == "unconfined",
    )


def _repositories(settings: Settings, shell: Shell) -> Callable[[UserId], Awaitable[str]]:
    if settings.commands == "off":
        return no_repository
    return lambda user: look_at(settings.workspaces / user, shell)


def _workspaces(settings: Settings, shell: Shell) -> Callable[[UserId], Sequence[Offer]]:
    network = CheckedNetwork(allow=[ip_network(one) for one in settings.private_networks])

    def offers(user: UserId) -> Sequence[Offer]:
        found = workspace_offers(settings.workspaces / user, shell, network)
        if settings.commands == "off":
            return [offer for offer in found if offer.tool.name != "run_command"]
        return found

    return offers


def _check_hidden(settings: Settings) -> None:
    """See that commands cannot read what is kept here; an operator may have said they can."""
    if settings.commands != "confined":
        return
    seen = confine_to(readable=settings.readable)
    for path in _secret_places(settings):
        if seen.can_read(path):
            raise BadSetting(
                f"Commands of agents could read {path}.",
                hint="Keep it elsewhere than in a folder of the system, and out of `readable`.",
            )


def _secret_places(settings: Settings) -> Sequence[Path]:
    return [path for path in (settings.data, settings.config) if path is not None]


def fits_one_more(free: int | None, *, starting: int) -> bool:
    """See whether one more program has room, beside those that have not taken theirs yet."""
    return free is None or free >= (starting + 1) * ONE_CLAUDE + RESERVE


def _fits_one_more(engine: Engine, runs: int) -> bool:
    # Of what was claimed a moment ago the free memory says nothing yet.
    starting = max(0, runs - getattr(engine, "active_programs", 0))
    return fits_one_more(free_memory(), starting=starting)
