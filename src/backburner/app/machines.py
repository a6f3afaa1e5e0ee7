"""Builds the machines that the settings ask for: engines, shell, network, channels."""

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from backburner.actions.deps import (
    NO_OAUTH,
    NO_PUSH,
    NO_TOOL_SERVERS,
    DescribeRepository,
    PushParts,
    no_repository,
)
from backburner.app.engines import build_engine, closer
from backburner.app.first_use import (
    LateNetwork,
    LateOAuth,
    LatePushCrypto,
    LatePushService,
    LateToolServers,
)
from backburner.app.repository import describe_ci, describe_repository
from backburner.core.conversation import Conversation
from backburner.core.errors import BadSetting
from backburner.core.ids import UserId
from backburner.core.routing import NO_ROUTES, Routes
from backburner.core.run import Item, Turn
from backburner.core.tool_policy import COMMAND_TOOL
from backburner.core.work.discovery import REPOSITORY
from backburner.ports import (
    NO_CONNECTIONS,
    Channel,
    Connected,
    Engine,
    OAuth,
    Offer,
    Shell,
    Store,
    ToolServers,
)
from backburner.process.confinement import cage_missing, confine_to
from backburner.process.memory import free_memory
from backburner.process.piped_program import PipedPrograms, find_readable
from backburner.process.shell import ConfinedShell
from backburner.process.sign_ins.runner import SignedInPrograms
from backburner.process.sign_ins.sign_in import Owner
from backburner.process_folder import LateProcessFolder
from backburner.settings import Settings
from backburner.tools.interrupted_commands import KEPT_OF_FOLDER
from backburner.tools.toolbox import no_workspace
from backburner.tools.workspace import CommandTerms, workspace_offers

#: Memory of one Claude Code process, and memory left for everything else.
CLAUDE_MEMORY_BYTES = 250 * 2**20
RESERVED_MEMORY_BYTES = 250 * 2**20


class NoTools:
    """A toolbox without tools, for actions that run no agent."""

    def connect(
        self, turn: Turn, conversation: Conversation, items: Sequence[Item]
    ) -> AbstractAsyncContextManager[Connected]:
        del turn, conversation, items
        return nullcontext(NO_CONNECTIONS)

    async def offers(self, turn: Turn, conversation: Conversation) -> Sequence[Offer]:
        del turn, conversation
        return ()

    async def check_folder(self, conversation: Conversation) -> None:
        pass

    async def end_run(self, turn: Turn) -> None:
        pass


async def nothing_to_close() -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """Everything that actions use to reach the outside, apart from the database."""

    engines: Mapping[str, Engine] = field(default_factory=dict)
    default_profile: str = ""
    #: Maximum concurrent runs of each engine that has a limit of its own.
    seats: Mapping[str, int] = field(default_factory=dict)
    #: Whether an engine has memory for one more run, given the number of its current runs.
    has_room: Callable[[str, int], bool] = lambda _name, _runs: True
    #: Selects the profile of a new conversation; engines are keyed by profile.
    routes: Routes = NO_ROUTES
    #: Kind and address of the model of each profile.
    model_servers: Mapping[str, str] = field(default_factory=dict)
    #: Engines that are immune to prompt injection.
    injection_proof: frozenset[str] = frozenset()
    #: Profiles whose agent is Claude Code.
    claude: frozenset[str] = frozenset()
    #: The tools for a user's workspace: files and commands.
    workspace: Callable[[UserId, CommandTerms], Sequence[Offer]] = no_workspace
    #: Makes a folder for the attached files of a run; None: there is no place for them.
    attachments: Callable[[], Path] | None = None
    #: Whether programs can use the sign-ins of a single user.
    has_sign_ins: bool = False
    #: Describes the git repository in a user's workspace, if there is one.
    repository: DescribeRepository = no_repository
    channels: Mapping[str, Channel] = field(default_factory=dict)
    #: Opens sessions with the servers of connections.
    tool_servers: ToolServers = NO_TOOL_SERVERS
    oauth: OAuth = NO_OAUTH
    push: PushParts = NO_PUSH
    #: Wraps the store; only tests use it, to inject faults.
    store: Callable[[Store], Store] = lambda store: store
    close: Callable[[], Awaitable[None]] = nothing_to_close


def build_machines(settings: Settings, command: str) -> Machines:
    """Build an engine for each profile, and the tools of workspaces.

    `command` is how the user calls this program.
    """
    _check_secrets_hidden(settings)
    _check_programs(settings)
    shell = _shell(settings)
    attachments = LateProcessFolder(settings.data / "attachments")
    machines = Machines(
        workspace=_workspaces(settings, shell),
        attachments=partial(attachments.make, "run-"),
        has_sign_ins=build_sign_ins(settings) is not None,
        repository=_repositories(settings, shell),
        tool_servers=_tool_servers(settings),
        oauth=LateOAuth(
            allow=settings.private_networks,
            public_url=settings.public_url,
            clients=settings.oauth_clients,
        ),
        push=PushParts(
            service=LatePushService(allow=settings.private_networks),
            crypto=LatePushCrypto(),
            contact=settings.push_contact or settings.public_url,
        ),
    )
    engines = {
        profile.name: build_engine(profile, settings, command)
        for profile in settings.profiles.values()
    }
    close_engines = closer(engines.values())

    async def close() -> None:
        await close_engines()
        await asyncio.to_thread(attachments.close)

    return replace(_with_engines(machines, engines, settings), close=close)


def rebuild_engines(
    machines: Machines, before: Settings, after: Settings, command: str
) -> Machines:
    """Build an engine for each profile that is new or has changed; the others are kept."""
    engines = {
        name: machines.engines[name]
        if name in machines.engines and before.profiles.get(name) == profile
        else build_engine(profile, after, command)
        for name, profile in after.profiles.items()
    }
    return _with_engines(machines, engines, after)


def _with_engines(
    machines: Machines, engines: Mapping[str, Engine], settings: Settings
) -> Machines:
    profiles = settings.profiles.values()
    claude = frozenset(profile.name for profile in profiles if profile.engine == "claude")
    return replace(
        machines,
        engines=engines,
        default_profile=settings.routes.chat,
        seats=settings.seats,
        has_room=lambda name, runs: name not in claude or _has_room(engines[name], runs),
        routes=settings.routes,
        model_servers={profile.name: profile.server for profile in profiles},
        injection_proof=frozenset(profile.name for profile in profiles if profile.engine == "demo"),
        claude=claude,
    )


def _shell(settings: Settings) -> Shell:
    names = settings.command_env
    return ConfinedShell(
        readable=settings.readable,
        variables={name: os.environ[name] for name in names if name in os.environ},
        unconfined=settings.commands == "unconfined",
        disk=settings.data,
    )


def _tool_servers(settings: Settings) -> ToolServers:
    programs = PipedPrograms(
        unconfined=settings.commands == "unconfined",
        disk=settings.data,
        # Users import programs, with folders that they choose.
        hidden=_secret_places(settings),
    )
    return LateToolServers(allow=settings.private_networks, start=programs.start)


def _repositories(settings: Settings, shell: Shell) -> DescribeRepository:
    if settings.commands == "off":
        return no_repository
    sign_ins = build_sign_ins(settings)

    async def describe(
        conversation: Conversation, *, may_sign_in: bool, folders: Sequence[str]
    ) -> str:
        own = conversation.folder_path
        folder = settings.workspaces / conversation.user_id if own is None else Path(own)
        real = Path(await asyncio.to_thread(os.path.realpath, folder))
        if own is not None and real != folder:
            return ""
        described = await describe_repository(real, shell)
        name = str(conversation.state.context.get(REPOSITORY, ""))
        if name and may_sign_in and sign_ins is not None:
            agents = [Path(path) for path in folders]
            described += await describe_ci(real, name, sign_ins, agents=agents)
        return described

    return describe


def _workspaces(
    settings: Settings, shell: Shell
) -> Callable[[UserId, CommandTerms], Sequence[Offer]]:
    network = LateNetwork(allow=settings.private_networks)
    sign_ins = build_sign_ins(settings)

    def offers(user: UserId, terms: CommandTerms) -> Sequence[Offer]:
        folder, kept = settings.workspaces / user, settings.kept_changes / user
        if terms.folder is not None:
            folder = Path(terms.folder.path)
            kept /= f"{KEPT_OF_FOLDER}{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
        all_offers = workspace_offers(folder, kept, shell, network, terms, sign_ins)
        if settings.commands == "off":
            return [offer for offer in all_offers if offer.tool.name != COMMAND_TOOL]
        return all_offers

    return offers


def build_sign_ins(settings: Settings) -> SignedInPrograms | None:
    """Return the sign-ins of the operator; None where programs cannot be held, or for a team.

    With PostgreSQL, work may run on other machines than the one that its user has signed in on.
    """
    if settings.commands != "confined" or settings.database_url is not None:
        return None
    if cage_missing() is not None:
        return None
    return SignedInPrograms(
        Owner(Path.home(), os.environ),
        agents=(settings.data, settings.workspaces),
        readable=settings.readable,
        disk=settings.data,
    )


def _check_secrets_hidden(settings: Settings) -> None:
    """Refuse settings under which confined commands could read our secrets, or others' files."""
    if settings.commands != "confined":
        return
    confinement = confine_to(readable=settings.readable)
    private = (settings.data, settings.config, settings.tls_key, settings.master_key_file)
    for path in (*private, settings.workspaces):
        if path is not None and confinement.can_read(path):
            raise BadSetting(
                f"Commands of agents could read {path}.",
                hint="Move it out of system folders and of those in `readable`.",
            )


def _check_programs(settings: Settings) -> None:
    """Refuse programs as MCP servers that could read our secrets."""
    if settings.commands == "unconfined":
        return
    for name, program in settings.mcp_programs.items():
        if (path := find_readable(program, _secret_places(settings))) is not None:
            raise BadSetting(
                f"The program {name} of `mcp_programs` could read {path}.",
                hint="Take the folder out of its `readable` and `writable`.",
            )


def _secret_places(settings: Settings) -> Sequence[Path]:
    places = (settings.data, settings.config, settings.tls_key, settings.master_key_file)
    return [path for path in places if path is not None]


def has_memory(free: int | None, *, starting: int) -> bool:
    """Check for room for one more process, besides `starting` ones that are still growing."""
    needed = (starting + 1) * CLAUDE_MEMORY_BYTES + RESERVED_MEMORY_BYTES
    return free is None or free >= needed


def _has_room(engine: Engine, runs: int) -> bool:
    # Runs that were just claimed do not use their memory yet.
    starting = max(0, runs - getattr(engine, "active_programs", 0))
    return has_memory(free_memory(), starting=starting)
