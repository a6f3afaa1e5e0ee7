"""Every setting: its default, its unit and its meaning.

Sources, the first wins: command-line options, `BACKBURNER_*`, the TOML file, the defaults.
"""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import quote, unquote, urlsplit

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from backburner.core.errors import BadRequest, BadSetting
from backburner.core.routing import Routes
from backburner.core.work.agents import BUILT_IN
from backburner.core.work.timeouts import check_timeout
from backburner.data_folder import (
    PREFIX,
    SETTINGS_FILE,
    default_data,
    find_data,
    read_settings_file,
)
from backburner.settings.agents import Agents, read_agents
from backburner.settings.master_keys import master_key_texts
from backburner.settings.mcp_programs import McpPrograms, secret_values
from backburner.settings.oauth_clients import OAuthClients
from backburner.settings.profiles import Profiles, read_profiles
from backburner.settings.sources import (
    FallbackSource,
    Variables,
    read_models_file,
    read_secret_files,
    secret_files,
)
from backburner.settings.values import (
    Commands,
    Contact,
    Count,
    CountOrNone,
    DatabaseUrl,
    Duration,
    File,
    Folder,
    Folders,
    FolderTemplates,
    Host,
    Limit,
    LogFormat,
    LogLevel,
    Networks,
    Port,
    Prices,
    PublicUrl,
    Secret,
    Switch,
    Takes,
    ToolNames,
    VariableNames,
    is_loopback,
)


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )

    config: Annotated[Path | None, Takes("a file")] = Field(
        default=None,
        description=f"TOML file with settings. Default: `{SETTINGS_FILE}` in the data folder, if it"
        " exists.",
    )
    data: Folder = Field(
        default_factory=default_data,
        description="Folder for all data of Backburner on this machine.",
    )
    database_url: DatabaseUrl = Field(
        default=None,
        description="URL of the database. Default: a SQLite file in the data folder.",
    )
    database_direct_url: DatabaseUrl = Field(
        default=None,
        description="URL of the PostgreSQL server itself, if `database_url` is that of a pooler in"
        " transaction mode. For notifications between processes, `db check` and"
        " `db restore --loaded`.",
    )
    master_key_file: File = Field(
        default=None,
        description="File with the master keys that seal secrets in the database. Default: the"
        " variable `BACKBURNER_MASTER_KEYS`, else `master_keys` in the data folder, which is made"
        " when the first secret is stored. See [secrets](../how-to/secrets.md).",
    )
    host: Host = Field(
        default="127.0.0.1",
        description="Address to listen on. An address that other machines can reach requires an"
        " account with a password, and either TLS or a `public_url`.",
    )
    port: Port = Field(default=8484, description="Port to listen on; 0 chooses a free one.")
    worker_port: Annotated[Port | None, Takes("an integer from 0 to 65535")] = Field(
        default=None,
        description="Port on which a `backburner worker` serves `/health`, `/ready` and `/metrics`,"
        " at the address `host`; 0 chooses a free one. Default: none.",
    )
    public_url: PublicUrl = Field(
        default="",
        description="Public https URL when behind a reverse proxy. Requests for its host name are"
        " accepted; the proxy terminates TLS. Links in notices begin with it; without it, a"
        " worker on its own names commands instead.",
    )
    push_contact: Contact = Field(
        default="",
        description="Address at which push services of browsers reach you, if messages of this"
        " server cause trouble. Default: `public_url`. Apple takes no messages without one.",
    )
    trusted_proxies: Networks = Field(
        default=(),
        description="Networks of reverse proxies whose `X-Forwarded-*` headers are trusted, such as"
        " `127.0.0.1` for one on this machine. Any program of a named machine can then claim to be"
        " any client.",
    )
    tls_certificate: File = Field(
        default=None, description="TLS certificate with its chain, as a PEM file."
    )
    tls_key: File = Field(default=None, description="Private key of the certificate, unencrypted.")
    log_level: LogLevel = Field(
        default="info",
        description="Minimum level of log lines. If it is set, stderr shows them too.",
    )
    log_format: LogFormat = Field(
        default="text",
        description="Format of log lines: text, or one JSON object per line. If it is set, stderr"
        " shows them too.",
    )

    profiles: Profiles = Field(
        default_factory=lambda: read_profiles({}),
        description="Model configurations by name. The profile `demo` is built in.",
    )
    profile: Annotated[str, Takes("the name of a profile")] = Field(
        default="",
        description="Profile for chats. Default: the first profile, or `demo` if there is none.",
    )
    background_profile: Annotated[str, Takes("the name of a profile")] = Field(
        default="",
        description="Profile for tasks, jobs and discovery. A run that fails with it is retried"
        " once with `profile`. Default: `profile`.",
    )
    agents: Agents = Field(
        default_factory=lambda: read_agents({}),
        description="Agents by name, for jobs and tasks: `instructions`, the only `tools` that they"
        " may use, and a `profile`. Built in are `general`, `researcher` and `coder`.",
    )
    own_model_keys: Switch = Field(
        default=False,
        description="Whether users may store keys of their own for models, which are then used for"
        " their work only. See [secrets](../how-to/secrets.md).",
    )
    stall: Duration = Field(
        default=timedelta(minutes=2),
        description="Time without output after which a model call fails.",
    )
    context: Count = Field(
        default=16000,
        description="Tokens after which a task starts a new agent session.",
    )
    context_chat: Count = Field(
        default=100_000, description="Tokens after which a chat or job starts a new agent session."
    )
    warm_chats: CountOrNone = Field(
        default=2, description="Maximum number of chats whose agent process is kept running."
    )
    warm_for: Duration = Field(
        default=timedelta(minutes=5), description="Time for which such a process is kept."
    )
    claude_tools: ToolNames = Field(
        default=(), description="Built-in tools of Claude Code that agents may use."
    )

    workspace: Annotated[Folder | None, Takes("a folder")] = Field(
        default=None,
        description="Folder for the workspaces of users. Default: `workspaces` in the data folder.",
    )
    folders: FolderTemplates = Field(
        default=(),
        description="Folders in which the conversations of each account may work; `{login}` stands"
        " for the login. With SQLite and one account, `backburner folders` adds more.",
    )
    folders_shared: Switch = Field(
        default=False,
        description="Whether all machines have the same folders, given or added. Set it alike on"
        " all of them.",
    )
    commands: Commands = Field(
        default="confined",
        description="Whether agents may run commands: confined to the workspace, unconfined, or"
        " not at all.",
    )
    readable: Folders = Field(
        default=(), description="Additional folders that commands may read but not change."
    )
    command_env: VariableNames = Field(
        default=(), description="Environment variables that are passed on to commands."
    )
    private_networks: Networks = Field(
        default=(),
        description="Private networks from which agents may fetch pages, to whose MCP servers users"
        " may connect, and whose push services browsers may have.",
    )
    mcp_programs: McpPrograms = Field(
        default_factory=dict,
        description="Programs on this machine that users may connect to as MCP servers, by name:"
        " `command`, a list; `environment`, a table, complete but for HOME, LANG, PATH and TMPDIR;"
        " `network`, default false; `readable` and `writable`, lists of folders. They run in the"
        " same cage as commands.",
    )
    oauth_clients: OAuthClients = Field(
        default_factory=dict,
        description="Clients that you have registered with authorization servers, by issuer: `id`,"
        " `secret` if there is one, and `servers`, the hosts of the MCP servers that it is for."
        " Their redirect address is `/oauth/callback` of"
        " `public_url`. Servers where Backburner can register by itself need none.",
    )

    enabled: Switch = Field(
        default=True, description="Whether background work runs. Chats work in any case."
    )
    poll_interval: Duration = Field(
        default=timedelta(seconds=5), description="Interval between polls for due work."
    )
    batch: Count = Field(
        default=5,
        description="Maximum number of runs claimed per poll; if there is more to claim, the next"
        " poll follows at once.",
    )
    concurrency: Count = Field(
        default=5,
        description="Maximum number of concurrent runs. Of two or more seats, one is kept for"
        " replies; of three or more, another one for runs with a timeout of up to 10 minutes. Jobs"
        " have an hour unless they are given less.",
    )
    per_user_concurrency: Annotated[Count | None, Takes("an integer from 1")] = Field(
        default=None,
        description="Maximum number of concurrent background runs per user, of all workers."
        " Default: no limit while there is one account, otherwise 3.",
    )
    requests_per_minute: Count = Field(
        default=600, description="Maximum number of API requests per minute and credential."
    )
    connections_per_user: Count = Field(
        default=10,
        description="Maximum number of open event streams per user, and of calls by MCP clients.",
    )
    run_timeout: Duration = Field(
        default=timedelta(minutes=5),
        description="Timeout of a run of a chat, or of a task that has none of its own.",
    )
    job_timeout: Duration = Field(
        default=timedelta(hours=1),
        description="Timeout of a run of a job that is started without one; up to 24h.",
    )
    lease: Duration = Field(
        default=timedelta(seconds=30),
        description="Time after which the run of an unresponsive worker is released.",
    )
    heartbeat: Duration = Field(
        default=timedelta(seconds=10),
        description="Interval at which a worker renews its leases; shorter than `lease`.",
    )
    drain: Duration = Field(
        default=timedelta(seconds=20),
        description="Grace period for runs when the program is stopped.",
    )
    delivery_lease: Duration = Field(
        default=timedelta(minutes=1),
        description="Time after which the delivery of an unresponsive worker is retried.",
    )
    allowance_run: Limit = Field(default="2 USD, 2000000 tokens", description="Limit for one run.")
    allowance_conversation: Limit = Field(
        default="none", description="Limit for one conversation, including the jobs it starts."
    )
    allowance_user: Limit = Field(default="none", description="Limit for one user in total.")
    allowance_day: Limit = Field(
        default="10 USD", description="Limit for one user per day, in the user's time zone."
    )
    prices: Prices = Field(
        default_factory=dict,
        description="Prices of models in dollars per million tokens; they override list prices.",
    )
    discovery_enabled: Switch = Field(
        default=True,
        description="Whether users may turn on discovery, in which the agent looks for work to"
        " propose. It is off for each user until they turn it on.",
    )
    discovery_interval: Duration = Field(
        default=timedelta(minutes=30), description="Minimum time between two discovery runs."
    )
    idle_threshold: Duration = Field(
        default=timedelta(minutes=10),
        description="Time without a message from the user before discovery runs.",
    )
    max_active_tasks: Count = Field(
        default=20, description="Maximum number of active tasks per user."
    )
    min_interval: Duration = Field(
        default=timedelta(minutes=1),
        description="Shortest interval of repeated work with a real model. The demo has none.",
    )
    keep_runs_days: Count = Field(
        default=30,
        description="Days after which records of runs are deleted, with the files that nothing else"
        " names.",
    )
    max_file_mb: Count = Field(
        default=20, description="Maximum size in megabytes of a file that a tool returns."
    )
    max_files_mb: Count = Field(
        default=1000, description="Maximum size in megabytes of all files of a user."
    )

    @model_validator(mode="after")
    def _check_heartbeat(self) -> Self:
        if self.heartbeat >= self.lease:
            raise BadSetting(
                "heartbeat must be shorter than lease.",
                hint="Set heartbeat to a third of lease.",
            )
        return self

    @model_validator(mode="after")
    def _check_job_timeout(self) -> Self:
        try:
            check_timeout(self.job_timeout)
        except BadRequest as error:
            raise BadSetting(f"job_timeout is not valid: {error}") from None
        return self

    @model_validator(mode="after")
    def _check_encryption(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise BadSetting("Only one of tls_certificate and tls_key is set.", hint="Set both.")
        if self.is_open and not self.tls_certificate and not self.public_url:
            raise BadSetting(
                f"Connections to {self.host} from other machines would not be encrypted.",
                hint="Set tls_certificate and tls_key, or public_url to the https URL of a reverse"
                " proxy, or listen on 127.0.0.1.",
            )
        return self

    @model_validator(mode="after")
    def _check_profile_names(self) -> Self:
        for setting in ("profile", "background_profile"):
            name = getattr(self, setting)
            if name and name not in self.profiles:
                raise BadSetting(
                    f"`{setting}` is {name[:100]!r}, but no profile has this name.",
                    hint=f"Use one of {', '.join(self.profiles)}, or run `backburner setup`.",
                )
        return self

    @model_validator(mode="after")
    def _check_agents(self) -> Self:
        for agent in self.agents.values():
            if agent.profile is not None and agent.profile not in self.profiles:
                raise BadSetting(
                    f"The agent {agent.name} has the profile {agent.profile[:100]!r}, but no"
                    " profile has this name.",
                    hint=f"Use one of {', '.join(self.profiles)}.",
                )
            if agent.name in self.profiles and agent.name not in BUILT_IN:
                raise BadSetting(
                    f"{agent.name} is the name of an agent and of a profile.",
                    hint="Rename one of them: work names both in the same place.",
                )
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 (replaced by ours, which reads lists)
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 (there is no .env file)
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 (a variable names each file)
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        options = init_settings()
        file = read_settings_file(options, settings_cls.model_fields)
        return (
            init_settings,
            Variables(settings_cls),
            FallbackSource(settings_cls, dict(read_secret_files(secret_names()))),
            FallbackSource(settings_cls, file),
            FallbackSource(settings_cls, read_models_file(find_data(options, file))),
        )

    @property
    def is_open(self) -> bool:
        """Whether other machines can connect."""
        return not is_loopback(self.host)

    @property
    def proxies(self) -> tuple[str, ...]:
        """Addresses and networks of trusted reverse proxies."""
        return tuple(str(network) for network in self.trusted_proxies)

    @property
    def database(self) -> SecretStr:
        """The URL of the database, with the default filled in."""
        path = quote(str(self.data / "backburner.sqlite3"))
        return self.database_url or SecretStr(f"sqlite:///{path}")

    @property
    def workspaces(self) -> Path:
        """The folder of workspaces, with the default filled in."""
        return self.workspace or self.data / "workspaces"

    @property
    def kept_changes(self) -> Path:
        """The folder of changes that commands made and that were put back."""
        return self.data / "kept_changes"

    @property
    def routes(self) -> Routes:
        return Routes(
            names=tuple(self.profiles),
            chat=self.profile or next(iter(self.profiles)),
            background=self.background_profile or None,
        )

    @property
    def seats(self) -> dict[str, int]:
        """Maximum concurrent runs of each profile that has a limit."""
        return {
            profile.name: profile.seats
            for profile in self.profiles.values()
            if profile.seats is not None
        }

    def secrets(self) -> Iterator[str]:
        """Yield every value that must not appear in any output."""
        for profile in self.profiles.values():
            if profile.secret:
                yield profile.secret.get_secret_value()
        yield from master_key_texts()
        yield from (one.client.secret for one in self.oauth_clients.values() if one.client.secret)
        for program in self.mcp_programs.values():
            yield from secret_values(program)
        for url in filter(None, (self.database_url, self.database_direct_url)):
            yield url.get_secret_value()
            password = urlsplit(url.get_secret_value()).password or ""
            yield from (password, unquote(password))


def secret_names() -> tuple[str, ...]:
    return tuple(
        name
        for name, field in Settings.model_fields.items()
        if any(isinstance(mark, Secret) for mark in field.metadata)
    )


def find_secret_files() -> list[Path]:
    """List the files that variables name instead of a secret."""
    return [path for _, path in secret_files(secret_names())]


def takes(name: str) -> Takes:
    """Return the description of a setting's valid values."""
    marks = Settings.model_fields[name].metadata
    return next(mark for mark in marks if isinstance(mark, Takes))
