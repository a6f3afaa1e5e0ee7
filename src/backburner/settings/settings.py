"""Every setting: its default, its unit and what it means.

The strongest source wins: a command's options, `BACKBURNER_*`, a TOML file, the defaults.
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

from backburner.core.errors import BadSetting
from backburner.core.routing import Routes
from backburner.settings.decoding import Variables, Weaker
from backburner.settings.names import FILE_NAME, PREFIX
from backburner.settings.prices import all_prices
from backburner.settings.profiles import Profiles, read_profiles
from backburner.settings.sources import find_data, read_file, read_models, read_secret_files
from backburner.settings.values import (
    Commands,
    Count,
    CountOrNone,
    DatabaseUrl,
    Duration,
    File,
    Folder,
    Folders,
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
    default_data,
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
        description=f"The TOML file to read settings from. Without it, `{FILE_NAME}` in the data"
        " folder is read if it is there.",
    )
    data: Folder = Field(
        default_factory=default_data,
        description="The folder that holds everything Backburner keeps on this machine.",
    )
    database_url: DatabaseUrl = Field(
        default=None,
        description="The database. Without it, a SQLite file in the data folder.",
    )
    host: Host = Field(
        default="127.0.0.1",
        description="The address to listen on. One that other machines reach needs an account with"
        " a password, and a certificate or a `public_url`.",
    )
    port: Port = Field(default=8484, description="The port to listen on; 0 takes any that is free.")
    public_url: PublicUrl = Field(
        default="",
        description="The address that browsers reach a proxy in front of this under. Its name is"
        " answered to, and encryption is the proxy's.",
    )
    trusted_proxies: Networks = Field(
        default=(),
        description="The networks of proxies that are believed when they say who asks. Without it,"
        " one on this machine if there is a `public_url`, and else none.",
    )
    tls_certificate: File = Field(
        default=None, description="The certificate, with its chain, to encrypt with."
    )
    tls_key: File = Field(default=None, description="The key of that certificate.")
    log_level: LogLevel = Field(default="info", description="The least that is worth a log line.")
    log_format: LogFormat = Field(
        default="text", description="Log lines for people, or one JSON object each."
    )

    profiles: Profiles = Field(
        default_factory=lambda: read_profiles({}),
        description="The models there are, each a profile with a name. `demo` is built in.",
    )
    profile: Annotated[str, Takes("the name of a profile")] = Field(
        default="",
        description="What chats use. Without it, the first profile there is, and `demo` if none.",
    )
    background_profile: Annotated[str, Takes("the name of a profile")] = Field(
        default="",
        description="What tasks, jobs and discovery use; a run that fails there is tried once more"
        " under `profile`. Without it, the same as chats.",
    )
    stall: Duration = Field(
        default=timedelta(minutes=2), description="How long a model may say nothing in a run."
    )
    context: Count = Field(
        default=16000,
        description="The tokens after which background work begins a new session of the agent.",
    )
    context_chat: Count = Field(
        default=100_000, description="The tokens after which a chat begins a new one."
    )
    warm_chats: CountOrNone = Field(
        default=2, description="The most chats that keep an agent ready for the next message."
    )
    warm_for: Duration = Field(
        default=timedelta(minutes=5), description="How long an agent is kept ready."
    )
    claude_tools: ToolNames = Field(
        default=(), description="The tools of Claude Code itself that agents may use."
    )

    workspace: Annotated[Folder | None, Takes("a folder")] = Field(
        default=None,
        description="The folder with a workspace for each user. Without it, `workspaces` in the"
        " data folder.",
    )
    commands: Commands = Field(
        default="confined",
        description="Whether agents may run commands, and whether those are kept to the workspace.",
    )
    readable: Folders = Field(
        default=(), description="Further folders that commands may read, and not change."
    )
    command_env: VariableNames = Field(
        default=(), description="The variables of this program's environment that commands get."
    )
    private_networks: Networks = Field(
        default=(),
        description="The networks of one's own that agents may fetch pages from.",
    )

    enabled: Switch = Field(
        default=True, description="Whether background work is done; chats go on without it."
    )
    poll_interval: Duration = Field(
        default=timedelta(seconds=5), description="The time between two looks for work that is due."
    )
    batch: Count = Field(default=5, description="The most conversations taken up at one look.")
    concurrency: Count = Field(default=5, description="The most runs at the same time.")
    per_user_concurrency: Count = Field(
        default=3, description="The most runs of one user at the same time, so that no one starves."
    )
    run_timeout: Duration = Field(
        default=timedelta(minutes=5), description="The time after which a run is stopped."
    )
    lease: Duration = Field(
        default=timedelta(seconds=30),
        description="How long a run stays with a worker that has gone silent.",
    )
    heartbeat: Duration = Field(
        default=timedelta(seconds=10),
        description="The time between two signs of life of a worker; shorter than the lease.",
    )
    drain: Duration = Field(
        default=timedelta(seconds=20),
        description="How long runs have to come to a good place when the program is stopped.",
    )
    delivery_lease: Duration = Field(
        default=timedelta(minutes=1),
        description="How long a message that is being sent stays with a sender gone silent.",
    )
    allowance_run: Limit = Field(
        default="2 USD, 2000000 tokens", description="What one run may spend."
    )
    allowance_conversation: Limit = Field(
        default="none", description="What one conversation may spend, with all it hands out."
    )
    allowance_user: Limit = Field(default="none", description="What one user may spend in all.")
    allowance_day: Limit = Field(
        default="10 USD", description="What one user may spend in a day, in their time zone."
    )
    prices: Prices = Field(
        default_factory=dict,
        description="What models cost, in dollars for a million tokens. For Claude models there are"
        " list prices, which may have changed; what is said here wins. Of a model without a price"
        " only the tokens are counted.",
    )
    discovery_enabled: Switch = Field(
        default=True,
        description="Whether users may let the agent look for work to propose by itself; it does so"
        " for nobody who has not switched it on.",
    )
    discovery_interval: Duration = Field(
        default=timedelta(minutes=30), description="The time between two looks for such work."
    )
    idle_threshold: Duration = Field(
        default=timedelta(minutes=10),
        description="How long a user must have been silent before the agent looks for work.",
    )
    max_active_tasks: Count = Field(default=20, description="The most active tasks of one user.")
    keep_runs_days: Count = Field(
        default=30, description="The days after which the record of a run is deleted."
    )

    @model_validator(mode="after")
    def _beats_within_the_lease(self) -> Self:
        if self.heartbeat >= self.lease:
            raise BadSetting(
                "heartbeat must be shorter than lease.", hint="Set heartbeat to a third of it."
            )
        return self

    @model_validator(mode="after")
    def _encrypts_what_leaves_the_machine(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise BadSetting("tls_certificate and tls_key go together.", hint="Set both.")
        if self.is_open and not self.tls_certificate and not self.public_url:
            raise BadSetting(
                f"Other machines reach {self.host}, and what they send would not be encrypted.",
                hint="Set tls_certificate and tls_key, or public_url to the https address of a"
                " proxy in front of it; or listen on 127.0.0.1.",
            )
        return self

    @model_validator(mode="after")
    def _names_profiles_that_exist(self) -> Self:
        for setting in ("profile", "background_profile"):
            name = getattr(self, setting)
            if name and name not in self.profiles:
                raise BadSetting(
                    f"`{setting}` is {name[:100]!r}, and there is no profile of that name.",
                    hint=f"There are: {', '.join(self.profiles)}. `backburner setup` makes one.",
                )
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 (ours reads lists as well)
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 (there is no .env file)
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 (one variable names each)
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        options = init_settings()
        file = read_file(options, settings_cls.model_fields)
        return (
            init_settings,
            Variables(settings_cls),
            Weaker(settings_cls, dict(read_secret_files(secret_names()))),
            Weaker(settings_cls, file),
            Weaker(settings_cls, read_models(find_data(options, file))),
        )

    @property
    def is_open(self) -> bool:
        """Whether other machines reach it."""
        return not is_loopback(self.host)

    @property
    def proxies(self) -> tuple[str, ...]:
        """Which addresses and networks are believed when they say who asks."""
        usual = ("127.0.0.1", "::1") if self.public_url else ()
        return tuple(str(network) for network in self.trusted_proxies) or usual

    @property
    def database(self) -> SecretStr:
        """The database that is used, whether it was set or not."""
        path = quote(str(self.data / "backburner.sqlite3"))
        return self.database_url or SecretStr(f"sqlite:///{path}")

    @property
    def workspaces(self) -> Path:
        """The folder of workspaces that is used, whether it was set or not."""
        return self.workspace or self.data / "workspaces"

    @property
    def routes(self) -> Routes:
        return Routes(
            names=tuple(self.profiles),
            chat=self.profile or next(iter(self.profiles)),
            background=self.background_profile or None,
        )

    @property
    def seats(self) -> dict[str, int]:
        """How many runs there may be at once, for each profile that has a limit."""
        return {one.name: one.seats for one in self.profiles.values() if one.seats is not None}

    @property
    def all_prices(self) -> dict[str, str]:
        """What models cost, whoever said so."""
        of_profiles = {one.model: one.price for one in self.profiles.values() if one.price}
        return all_prices(of_profiles, self.prices)

    def secrets(self) -> Iterator[str]:
        """Yield every value that must not show anywhere."""
        for profile in self.profiles.values():
            if profile.secret:
                yield profile.secret.get_secret_value()
        if self.database_url:
            yield self.database_url.get_secret_value()
            password = urlsplit(self.database_url.get_secret_value()).password or ""
            yield from (password, unquote(password))


def secret_names() -> tuple[str, ...]:
    return tuple(
        name
        for name, field in Settings.model_fields.items()
        if any(isinstance(mark, Secret) for mark in field.metadata)
    )


def takes(name: str) -> str:
    """Say what a right value looks like."""
    marks = Settings.model_fields[name].metadata
    return next(mark.text for mark in marks if isinstance(mark, Takes))
