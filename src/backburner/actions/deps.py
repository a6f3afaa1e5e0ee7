"""The dependencies of the actions, built by `app`."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import IO, Any, Protocol

from backburner.core.allowance import Allowance, Amount, Price
from backburner.core.commands import LineStep
from backburner.core.connections.oauth_client import OAuthClient
from backburner.core.content.file import DEFAULT_LIMITS, FileLimits
from backburner.core.conversation import Conversation, Kind
from backburner.core.errors import Conflict, ConnectionFailed, NotFound, VaultLocked
from backburner.core.ids import ConnectionId, ConversationId, UserId
from backburner.core.passwords import DEFAULT_HASH_COST, HashCost
from backburner.core.routing import NO_ROUTES, AfterDemo, Routes
from backburner.core.work.agents import BUILT_IN, Agent, find_agent
from backburner.core.work.folders import ForbiddenPlaces
from backburner.ports import (
    Authorization,
    Bus,
    Channel,
    DraftBroadcast,
    DraftEvent,
    DraftListener,
    Engine,
    FolderContent,
    InterruptedCommand,
    ModelEntry,
    ModelList,
    ModelProfile,
    ModelRole,
    ModelSetup,
    ModelTest,
    OAuth,
    PendingSignIn,
    PushAnswer,
    PushCrypto,
    PushService,
    ReplyDraft,
    Secrets,
    SignInRequest,
    StdioProgram,
    Store,
    TokenIssuer,
    Tokens,
    Toolbox,
    ToolServer,
    ToolServers,
    ToolSession,
    Vault,
    VaultKeys,
)

DEFAULT_RESERVATION = Amount(micros=250_000, tokens=50_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    run_timeout: timedelta = timedelta(minutes=5)
    #: Of jobs that are started without a timeout.
    job_timeout: timedelta = timedelta(hours=1)
    #: How long a background run may continue without a tool call while a user waits.
    yield_timeout: timedelta = timedelta(seconds=3)
    #: How long an engine may take to stop.
    stop_timeout: timedelta = timedelta(seconds=10)
    #: The same during shutdown, when the run has to be handed back before the process ends.
    shutdown_timeout: timedelta = timedelta(seconds=2)
    #: Session length in tokens after which tasks, or chats and jobs, start a new session.
    background_context: int = 16_000
    chat_context: int = 100_000
    #: Amount that a run reserves from an allowance, if that much is left.
    reservation: Amount = DEFAULT_RESERVATION
    #: Active tasks of one user.
    max_tasks: int = 20
    #: Between two runs of repeated work with a real model.
    min_interval: timedelta = timedelta()
    files: FileLimits = DEFAULT_LIMITS

    def context_of(self, kind: Kind) -> int:
        """Return how long the sessions of a conversation may become, whatever runs in it."""
        is_work = kind in (Kind.TASK, Kind.DISCOVERY)
        return self.background_context if is_work else self.chat_context


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverySettings:
    allowed: bool = False
    every: timedelta = timedelta(minutes=30)
    #: How long a user must be inactive before discovery runs.
    quiet_period: timedelta = timedelta(minutes=10)

    @property
    def required_idle(self) -> timedelta | None:
        return self.quiet_period if self.allowed else None


async def no_folder(path: str) -> FolderContent:
    raise NotFound(f"There is no folder {path}.")


async def no_links(path: str) -> Sequence[str]:
    return [path]


async def no_places() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderRules:
    """The folders that conversations may work in on this machine."""

    #: The id of this machine, and its name.
    machine: str = ""
    machine_name: str = ""
    #: Whether the local command line may add folders.
    may_be_added: bool = False
    #: Folders that the settings give to each account; `{login}` stands for its login.
    templates: tuple[str, ...] = ()
    #: All machines have the same folders: each is one folder, whatever machine was noted with it.
    is_shared: bool = False
    forbidden: ForbiddenPlaces = field(default_factory=ForbiddenPlaces)
    #: Finds a folder and reads its instructions. Raises `NotFound` or `NotAllowed`.
    read: Callable[[str], Awaitable[FolderContent]] = no_folder
    #: Finds the places that are not folders of users where agents write, with a word for each.
    of_agents: Callable[[], Awaitable[Mapping[str, str]]] = no_places
    #: Finds where a path leads: each link on the way and the end, as paths without links.
    trace: Callable[[str], Awaitable[Sequence[str]]] = no_links

    def bound_to(self, machine: str) -> str:
        """Return the machine that a folder of this machine is bound to; empty: all share it."""
        return "" if self.is_shared else machine


class DescribeRepository(Protocol):
    def __call__(
        self, conversation: Conversation, *, may_sign_in: bool, folders: Sequence[str]
    ) -> Coroutine[Any, Any, str]:
        """Describe the git repository of a conversation; empty: there is none.

        `folders` are all folders of its user that agents write.
        """


async def no_repository(
    conversation: Conversation, *, may_sign_in: bool, folders: Sequence[str]
) -> str:
    del conversation, may_sign_in, folders
    return ""


async def no_files(_user: UserId) -> None:
    pass


def no_interrupted_commands() -> AbstractAsyncContextManager[Sequence[InterruptedCommand]]:
    return nullcontext(())


async def no_copy() -> IO[bytes]:
    raise Conflict("This database cannot be copied from here.")


async def no_reload() -> bool:
    raise Conflict("This server cannot reload its models.", hint="Restart it.")


class NoModelSetup:
    """For processes whose models are set elsewhere."""

    async def list(self) -> ModelList:
        raise _cannot_set_up()

    async def test(self, entry: ModelEntry | None, profile: str | None) -> ModelTest:
        del entry, profile
        raise _cannot_set_up()

    async def offered(self, entry: ModelEntry | None, profile: str | None) -> Sequence[str]:
        del entry, profile
        raise _cannot_set_up()

    async def save(self, name: str, entry: ModelEntry, roles: Sequence[ModelRole]) -> ModelProfile:
        del name, entry, roles
        raise _cannot_set_up()

    async def choose(self, chosen: Mapping[ModelRole, str | None]) -> None:
        del chosen
        raise _cannot_set_up()

    async def remove(self, name: str) -> None:
        del name
        raise _cannot_set_up()


NO_MODEL_SETUP = NoModelSetup()


def _cannot_set_up() -> Conflict:
    return Conflict(
        "The models of this server cannot be changed here.", hint="Change its settings."
    )


class NoVault:
    """For processes that open no secrets."""

    def put(self, _secrets: Secrets, _owner: UserId | None, _name: str, _secret: bytes) -> None:
        raise VaultLocked("This process has no vault.", permanent=True)

    def add(self, _secrets: Secrets, _owner: UserId | None, _name: str, _secret: bytes) -> bool:
        raise VaultLocked("This process has no vault.", permanent=True)

    def load(self, _secrets: Secrets, _owner: UserId | None, _name: str) -> bytes | None:
        raise VaultLocked("This process has no vault.", permanent=True)


NO_VAULT = NoVault()


class NoOAuth:
    """For processes that sign in nowhere."""

    async def begin(
        self,
        server_url: str,
        *,
        origin: str,
        client: OAuthClient | None = None,
        issuer: str = "",
        earlier: TokenIssuer | None = None,
        scopes: Iterable[str] = (),
    ) -> SignInRequest:
        del server_url, origin, client, issuer, earlier, scopes
        raise _cannot_sign_in()

    async def exchange(self, _pending: PendingSignIn, _code: str) -> Tokens:
        raise _cannot_sign_in()

    async def refresh(self, _issuer: TokenIssuer, _refresh_token: str) -> Tokens:
        raise _cannot_sign_in()

    async def revoke(self, _issuer: TokenIssuer, _token: str) -> None:
        raise _cannot_sign_in()


NO_OAUTH = NoOAuth()


def _cannot_sign_in() -> ConnectionFailed:
    return ConnectionFailed("This process cannot sign in to servers.")


class NoPush:
    """For processes that send no push messages."""

    async def check(self, _endpoint: str) -> None:
        raise Conflict("This process sends no push messages.")

    async def post(self, _endpoint: str, _body: bytes, _headers: Mapping[str, str]) -> PushAnswer:
        raise ConnectionFailed("This process sends no push messages.", permanent=True)

    def make_key(self) -> bytes:
        raise Conflict("This process sends no push messages.")

    def public_key(self, _key: bytes) -> bytes:
        raise Conflict("This process sends no push messages.")

    def check_receiver(self, _receiver_key: bytes, _auth: bytes) -> None:
        raise Conflict("This process sends no push messages.")

    def encrypt(self, _payload: bytes, *, receiver_key: bytes, auth: bytes) -> bytes:
        del receiver_key, auth
        raise Conflict("This process sends no push messages.")

    def sign(self, _key: bytes, _claims: Mapping[str, object]) -> str:
        raise Conflict("This process sends no push messages.")


_NO_PUSH = NoPush()


@dataclass(frozen=True, slots=True, kw_only=True)
class PushParts:
    """The parts that push messages to browsers need."""

    service: PushService = _NO_PUSH
    crypto: PushCrypto = _NO_PUSH
    #: How push services reach the operator, as a mailto: or https: address; empty: it is unknown.
    contact: str = ""


NO_PUSH = PushParts()


class NoDrafts:
    """For processes without listeners."""

    def publish(self, user: UserId, conversation_id: ConversationId, event: DraftEvent) -> None:
        pass

    def listen(self, _listener: DraftListener) -> AbstractContextManager[None]:
        return nullcontext()

    def replies(self, _user: UserId) -> tuple[ReplyDraft, ...]:
        return ()

    def is_writing(self, _user: UserId, _conversation_id: ConversationId) -> bool:
        return False


NO_DRAFTS = NoDrafts()


class NoToolServers:
    """For processes that open no connections."""

    def open(self, server: ToolServer, authorization: Authorization) -> ToolSession:
        del authorization
        raise Conflict(f"This process does not connect to {server.title}.")


NO_TOOL_SERVERS = NoToolServers()


def no_price(_model: str) -> Price | None:
    return None


@dataclass(slots=True, kw_only=True, eq=False)
class Deps:
    """Shared by all parts of a process.

    Only `app` changes it: when models are reloaded, and when the server knows its address.
    """

    store: Store
    #: None: this process polls.
    bus: Bus | None = None
    #: By profile; a conversation without a profile uses `default_profile`.
    engines: Mapping[str, Engine]
    default_profile: str
    toolbox: Toolbox
    #: Profiles that are immune to prompt injection.
    injection_proof: frozenset[str] = frozenset()
    #: Profiles whose agent is Claude Code.
    claude: frozenset[str] = frozenset()
    #: Chooses the profile of a new conversation.
    routes: Routes = NO_ROUTES
    #: Kind and address of the model of each profile: keys of users are for one of these.
    model_servers: Mapping[str, str] = field(default_factory=dict)
    agents: Mapping[str, Agent] = field(default_factory=lambda: BUILT_IN)
    channels: Mapping[str, Channel] = field(default_factory=dict)
    #: Opens sessions with the servers of connections.
    tool_servers: ToolServers = NO_TOOL_SERVERS
    #: Programs that users may connect to, by name.
    mcp_programs: Mapping[str, StdioProgram] = field(default_factory=dict)
    #: When this process was started; None: nobody has said.
    started_at: datetime | None = None
    #: How this program is called, for commands in texts of the page.
    command: str = "backburner"
    #: The URL of the server, for addresses in deliveries; empty: it is not known.
    base_url: str = ""
    #: Drafts of the runs in this process.
    drafts: DraftBroadcast = NO_DRAFTS
    limits: Limits = Limits()
    password_cost: HashCost = DEFAULT_HASH_COST
    #: Defaults for users without their own.
    allowances: tuple[Allowance, ...] = ()
    #: Finds the price of a model; None if it is unknown.
    price_of: Callable[[str], Price | None] = no_price
    discovery: DiscoverySettings = DiscoverySettings()
    folders: FolderRules = FolderRules()
    vault: Vault = NO_VAULT
    #: Users may have keys of their own for models.
    own_model_keys: bool = False
    oauth: OAuth = NO_OAUTH
    push: PushParts = NO_PUSH
    #: Renewals of tokens in this process.
    renewals: dict[tuple[UserId, ConnectionId], asyncio.Task[Any]] = field(default_factory=dict)
    #: The keys of the same vault, for operators; None: there is no vault.
    vault_keys: VaultKeys | None = None
    #: Describes the git repository in a user's workspace; empty: there is none.
    describe_repository: DescribeRepository = no_repository
    #: Deletes the files of a user on this machine.
    remove_files: Callable[[UserId], Awaitable[None]] = no_files
    #: Yields the commands on this machine that were interrupted, and then forgets them.
    interrupted_commands: Callable[
        [], AbstractAsyncContextManager[Sequence[InterruptedCommand]]
    ] = no_interrupted_commands
    #: Splits a command line into its steps; None: lines are shown as they are.
    read_line: Callable[[str], tuple[LineStep, ...]] | None = None
    #: Reads the profiles again and puts them in place; False: nothing has changed.
    reload_models: Callable[[], Awaitable[bool]] = no_reload
    #: Tests models, and stores them in the data folder.
    model_setup: ModelSetup = NO_MODEL_SETUP
    #: Copies the database to a file that is deleted when closed.
    copy_database: Callable[[], Awaitable[IO[bytes]]] = no_copy

    def agent(self, name: str | None) -> Agent | None:
        """Find an agent, or the profile of that name, for new work."""
        return find_agent(self.agents, name, profiles=self.routes.names)

    @property
    def after_demo(self) -> AfterDemo:
        return AfterDemo(
            demos=self.injection_proof, routes=self.routes, min_interval=self.limits.min_interval
        )

    def can_be_injected(self, profile: str) -> bool:
        return (profile or self.default_profile) not in self.injection_proof
