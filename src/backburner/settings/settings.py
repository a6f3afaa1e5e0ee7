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
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from backburner.core.errors import BadSetting
from backburner.settings.names import FILE_NAME, PREFIX
from backburner.settings.sources import read_file, read_secret_files
from backburner.settings.values import (
    Count,
    DatabaseUrl,
    DataFolder,
    Duration,
    Host,
    Limit,
    LogFormat,
    LogLevel,
    Port,
    Prices,
    Secret,
    Switch,
    Takes,
    default_data,
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
    data: DataFolder = Field(
        default_factory=default_data,
        description="The folder that holds everything Backburner keeps on this machine.",
    )
    database_url: DatabaseUrl = Field(
        default=None,
        description="The database. Without it, a SQLite file in the data folder.",
    )
    host: Host = Field(default="127.0.0.1", description="The address to listen on.")
    port: Port = Field(default=8484, description="The port to listen on; 0 takes any that is free.")
    log_level: LogLevel = Field(default="info", description="The least that is worth a log line.")
    log_format: LogFormat = Field(
        default="text", description="Log lines for people, or one JSON object each."
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
        description="What models cost, in dollars for a million tokens. Of a model without a price"
        " only the tokens are counted.",
    )
    discovery_enabled: Switch = Field(
        default=False, description="Whether the agent may look for work to propose by itself."
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
    context_tokens: Count = Field(
        default=16000, description="The most tokens of earlier messages a run is given."
    )

    @model_validator(mode="after")
    def _beats_within_the_lease(self) -> Self:
        if self.heartbeat >= self.lease:
            raise BadSetting(
                "heartbeat must be shorter than lease.", hint="Set heartbeat to a third of it."
            )
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 (there is no .env file)
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 (one variable names each)
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (
            init_settings,
            env_settings,
            InitSettingsSource(settings_cls, dict(read_secret_files(secret_names()))),
            InitSettingsSource(settings_cls, read_file(init_settings(), settings_cls.model_fields)),
        )

    @property
    def database(self) -> SecretStr:
        """The database that is used, whether it was set or not."""
        path = quote(str(self.data / "backburner.sqlite3"))
        return self.database_url or SecretStr(f"sqlite:///{path}")

    def secrets(self) -> Iterator[str]:
        """Yield every value that must not show anywhere."""
        for name in secret_names():
            if value := getattr(self, name):
                yield value.get_secret_value()
        if self.database_url:
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
