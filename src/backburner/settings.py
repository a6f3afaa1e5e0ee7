"""Every setting: its default, its unit and what it means; and how a wrong one is refused.

The strongest source wins: a command's options, `BACKBURNER_*`, a TOML file, the defaults.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote, unquote, urlsplit

from platformdirs import user_data_path
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from backburner.core.allowance import Scope, parse_limit, parse_price
from backburner.core.errors import BadSetting

PREFIX = "BACKBURNER_"
#: Read by the tests of this project, not by the program.
NOT_OURS = "BACKBURNER_TEST_"
FILE_NAME = "backburner.toml"
LONGEST = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class Takes:
    """Mark a setting with what a right value looks like, for errors and for the reference page."""

    text: str


@dataclass(frozen=True, slots=True)
class Secret:
    """Mark a setting that is never shown, and that `BACKBURNER_<NAME>_FILE` may hold instead."""


def _refuse_truth(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError  # noqa: TRY004 (only this becomes a line about the setting)
    return value


def _in_small_letters(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _parse_duration(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)\s*(ms|s|m|h|d|)", str(value).strip())
    if isinstance(value, bool) or not found:
        raise ValueError
    unit = {"ms": 0.001, "s": 1, "": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]
    return timedelta(seconds=float(found[1]) * unit)


def _default_data() -> Path:
    try:
        return user_data_path("backburner", appauthor=False)
    except RuntimeError:
        # Nobody's home: refused in words when it turns out to be needed.
        return Path("~/backburner")


def _refuse_nothing(value: object) -> object:
    # An empty path would mean the current folder, and no path has a null character.
    if value == "" or "\0" in str(value):
        raise ValueError
    return value


def _check_folder(path: Path) -> Path:
    if os.path.expanduser(path).startswith("~"):  # noqa: PTH111 (does not raise)
        raise ValueError("there is no such home folder; name a folder in full")
    return _absolute(path)


def _absolute(path: Path | str) -> Path:
    # Unlike `Path.resolve` these keep symbolic links, and unlike `Path.expanduser` never raise.
    return Path(os.path.abspath(os.path.expanduser(path)))  # noqa: PTH100, PTH111


def _loopback(host: str) -> str:
    try:
        good = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        good = False
    if not good:
        raise ValueError(
            "only this machine may connect until there are accounts;"
            " use 127.0.0.1, ::1 or localhost"
        )
    return host


def _check_database_url(url: SecretStr | None) -> SecretStr | None:
    if url is None:
        return None
    # An error may quote no part of it.
    scheme, separator, rest = url.get_secret_value().partition("://")
    scheme = "postgresql" if scheme == "postgres" else scheme
    if not separator or scheme not in ("sqlite", "postgresql"):
        raise ValueError("it must start with sqlite:// or postgresql://")
    if scheme == "postgresql" and not _has_server(rest):
        raise ValueError(
            "its host or port cannot be read; special characters in a password are percent-encoded"
        )
    return SecretStr(f"{scheme}://{rest}")


def _has_server(rest: str) -> bool:
    """See whether host and port can be told; a bare #, ?, / or @ in a password hides them."""
    try:
        parts = urlsplit(f"//{rest}")
        _ = parts.port
    except ValueError:
        return False
    is_cut = "@" in parts.path or (not parts.path and "@" in parts.query)
    return not parts.fragment and not is_cut and parts.netloc.count("@") <= 1


def _check_limit(text: str) -> str:
    parse_limit(text, Scope.RUN)
    return text


def _check_prices(prices: dict[str, str]) -> dict[str, str]:
    for price in prices.values():
        parse_price(price)
    return prices


Switch = Annotated[bool, Takes("true or false")]
Count = Annotated[int, BeforeValidator(_refuse_truth), Field(ge=1), Takes("a whole number from 1")]
Port = Annotated[
    int,
    BeforeValidator(_refuse_truth),
    Field(ge=0, le=65535),
    Takes("a whole number from 0 to 65535"),
]
Duration = Annotated[
    timedelta,
    BeforeValidator(_parse_duration),
    Field(gt=timedelta(), le=LONGEST),
    Takes("a time up to 366d, such as 500ms, 30s, 10m, 2h; a bare number is seconds"),
]
Limit = Annotated[
    str,
    AfterValidator(_check_limit),
    Takes("money, tokens or both, such as 2.50 USD, 500000 tokens; or none"),
]
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]


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
    data: Annotated[
        Path, BeforeValidator(_refuse_nothing), AfterValidator(_check_folder), Takes("a folder")
    ] = Field(
        default_factory=_default_data,
        description="The folder that holds everything Backburner keeps on this machine.",
    )
    database_url: Annotated[
        SecretStr | None,
        AfterValidator(_check_database_url),
        Takes("a URL such as postgresql://user:password@host/name"),
        Secret(),
    ] = Field(
        default=None,
        description="The database. Without it, a SQLite file in the data folder.",
    )
    host: Annotated[str, AfterValidator(_loopback), Takes("a loopback address")] = Field(
        default="127.0.0.1", description="The address to listen on."
    )
    port: Port = Field(default=8484, description="The port to listen on; 0 takes any that is free.")
    log_level: Annotated[
        LogLevel, BeforeValidator(_in_small_letters), Takes("debug, info, warning or error")
    ] = Field(default="info", description="The least that is worth a log line.")
    log_format: Annotated[LogFormat, Takes("text or json")] = Field(
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
    prices: Annotated[
        dict[str, str],
        AfterValidator(_check_prices),
        Takes("a table: the beginning of a model's name, and a price such as 3 in, 15 out"),
    ] = Field(
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
            InitSettingsSource(settings_cls, dict(_read_secret_files())),
            InitSettingsSource(settings_cls, _read_file(init_settings())),
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


def load(**options: Any) -> Settings:
    """Read all sources; `options` are those of a command, None where one was not used."""
    given = {name: value for name, value in options.items() if value is not None}
    _refuse_unknown_variables()
    try:
        return Settings(**given)
    except ValidationError as invalid:
        raise _explain(invalid, given) from None


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


def variable(name: str) -> str:
    return PREFIX + name.upper()


def _read_secret_files() -> Iterator[tuple[str, str]]:
    for name in secret_names():
        path = os.environ.get(f"{variable(name)}_FILE")
        if not path:
            continue
        if os.environ.get(variable(name)):
            raise BadSetting(
                f"{variable(name)} and {variable(name)}_FILE are both set.", hint="Set one of them."
            )
        yield name, _read_text(Path(path), f"{variable(name)}_FILE").removesuffix("\n")


def _read_file(options: Mapping[str, Any]) -> dict[str, Any]:
    path, chosen = _find_file(options)
    # A folder that may not be entered is for whoever makes the data folder to explain.
    if not chosen and not os.path.exists(path):  # noqa: PTH110 (does not raise)
        return {}
    text = _read_text(path, "The settings file")
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadSetting(f"{path} is not TOML: {error}.") from None
    for name in found:
        if name not in Settings.model_fields or name == "config":
            hint = _suggest(name, Settings.model_fields)
            raise BadSetting(f"`{name}` in {path} is not a setting.", hint=hint)
    if "data" in found and not chosen:
        raise BadSetting(
            f"`data` cannot be set in {path}, which is found through it.",
            hint=f"Set {variable('data')} instead.",
        )
    return found


def _find_file(options: Mapping[str, Any]) -> tuple[Path, bool]:
    """Tell which file is read, and whether somebody chose it."""
    if chosen := options.get("config") or os.environ.get(variable("config")):
        return _absolute(chosen), True
    data = options.get("data") or os.environ.get(variable("data")) or _default_data()
    return _absolute(data) / FILE_NAME, False


def _read_text(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadSetting(f"{what} {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise BadSetting(f"{what} {path} is not UTF-8 text.") from None


def _refuse_unknown_variables() -> None:
    known = [name.upper() for name in Settings.model_fields]
    known += [f"{name.upper()}_FILE" for name in secret_names()]
    for name in sorted(os.environ):
        asked = name.removeprefix(PREFIX)
        if name.startswith(PREFIX) and not name.startswith(NOT_OURS) and asked not in known:
            hint = _suggest(asked, known, PREFIX)
            raise BadSetting(f"{name} is not a setting.", hint=hint)


def _suggest(asked: str, known: Iterable[str], prefix: str = "") -> str:
    # The prefix, which all share, would make everything look close.
    close = get_close_matches(asked, list(known), n=1)
    return f"Did you mean {prefix}{close[0]}?" if close else "docs/reference/settings.md has all."


def _explain(invalid: ValidationError, options: Mapping[str, Any]) -> BadSetting:
    """Put the first thing that is wrong into one line: where, what, and what would be right."""
    error = invalid.errors()[0]
    name = str(error["loc"][0])
    wrong = "is wrong" if name in secret_names() else f"cannot be {str(error['input'])[:100]!r}"
    reason = str(error.get("ctx", {}).get("error", "")) or f"it takes {takes(name)}"
    return BadSetting(f"{_find_source(name, options)} {wrong}: {reason}.")


def _find_source(name: str, options: Mapping[str, Any]) -> str:
    if name in options:
        return f"--{name.replace('_', '-')}"
    for setting in (variable(name), f"{variable(name)}_FILE"):
        if os.environ.get(setting):
            return setting
    return f"`{name}` in {_find_file(options)[0]}" if name in _read_file(options) else f"`{name}`"
