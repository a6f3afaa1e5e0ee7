"""Profiles: named model configurations, and their validation.

Validated by hand: the errors of a library would quote the table, secrets included.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import BeforeValidator, SecretStr

from backburner.core.allowance import parse_price
from backburner.core.errors import BadRequest, BadSetting
from backburner.data_folder import absolute, read_text
from backburner.settings.values import Secret, Takes

EngineName = Literal["claude", "openai", "demo"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
DEMO = "demo"
CLAUDE_ADDRESS = "https://api.anthropic.com"
CLAUDE_MODEL = "claude-sonnet-5-5"
#: Concurrent runs, unless set: for models elsewhere and in the private network.
DEFAULT_SEATS, LOCAL_SEATS = 5, 1
_SECRETS = ("key", "key_file", "token", "token_file")
_TEXTS = ("engine", "model", "address", "price", *_SECRETS)
_KEYS = (*_TEXTS, "seats", "images")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A named model configuration, with defaults filled in."""

    name: str
    engine: EngineName
    model: str
    #: Without a trailing slash; empty for the demo.
    address: str = ""
    key: SecretStr | None = None
    #: The token of a Claude subscription, instead of a key.
    token: SecretStr | None = None
    #: Maximum concurrent runs; None for no limit of its own.
    seats: int | None = None
    price: str | None = None
    #: Whether the model sees images; None: by its name.
    images: bool | None = None

    @property
    def secret(self) -> SecretStr | None:
        return self.key or self.token

    @property
    def server(self) -> str:
        """Where its key is sent, and its kind: that of a user is for no other."""
        return f"{self.engine} {'token' if self.token else 'key'} {self.address}"


class BadProfile(ValueError):
    """An invalid profile; the message quotes nothing that may be secret."""

    def __init__(self, profile: str, problem: str) -> None:
        super().__init__(f"{profile} {problem}")
        self.profile = profile


def read_profiles(tables: object) -> dict[str, Profile]:
    """Validate all profiles and add the built-in demo."""
    if not isinstance(tables, Mapping):
        raise ValueError  # noqa: TRY004 (only this becomes a line about the setting)
    profiles = {str(name): read_profile(str(name), table) for name, table in tables.items()}
    if DEMO in profiles:
        return profiles
    return {**profiles, DEMO: read_profile(DEMO, {"engine": "demo"})}


def read_profile(name: str, table: object) -> Profile:
    if isinstance(table, Profile):
        return table
    if not isinstance(table, Mapping):
        raise BadProfile(name, 'is not a table such as {engine = "claude", key_file = "..."}')
    try:
        _check_keys(table)
        return _READERS[_engine(name, table)](name, table)
    except (ValueError, BadRequest) as error:
        raise BadProfile(name, str(error).removesuffix(".")) from None


def is_near(address: str) -> bool:
    """Check whether an address is on this machine or in a private network."""
    host = urlsplit(address).hostname or ""
    try:
        return ip_address(host).is_private or ip_address(host).is_loopback
    except ValueError:
        # A name without a dot can only be resolved in a private network.
        return "." not in host or host.endswith((".local", ".localhost", ".internal"))


def _check_keys(table: Mapping[str, Any]) -> None:
    for key, value in table.items():
        if key not in _KEYS:
            keys = ", ".join(_KEYS)
            raise ValueError(f"has {str(key)[:40]!r}; the keys are {keys}")
        if key in _TEXTS and (not isinstance(value, str) or not value.strip()):
            raise ValueError(f"has a {key} that is not text")
    seats = table.get("seats", 1)
    if isinstance(seats, bool) or not isinstance(seats, int) or seats < 1:
        raise ValueError("has seats that are not an integer from 1")
    if not isinstance(table.get("images", False), bool):
        raise ValueError("has images that are not true or false")  # noqa: TRY004 (as the others)
    if "price" in table:
        parse_price(table["price"])


def _engine(name: str, table: Mapping[str, Any]) -> EngineName:
    if name == DEMO and table.get("engine") != "demo":
        raise ValueError("is built in; choose another name")
    for engine in ENGINES:
        if table.get("engine") == engine:
            return engine
    engine_text = f"the engine {table['engine'][:40]!r}" if "engine" in table else "no engine"
    raise ValueError(f"has {engine_text}; the engines are {', '.join(ENGINES)}")


def _read_claude(name: str, table: Mapping[str, Any]) -> Profile:
    if "images" in table:
        raise ValueError("has images, which is for openai; models of claude see images")
    secrets = [key for key in _SECRETS if key in table]
    if not secrets:
        raise ValueError(
            "has no key or token; set key, key_file, token or token_file, or run `backburner setup`"
        )
    if len(secrets) > 1:
        raise ValueError(f"has {' and '.join(secrets)}; set only one")
    address = clean_address(table.get("address", CLAUDE_ADDRESS))
    return Profile(
        name=name,
        engine="claude",
        model=table.get("model", CLAUDE_MODEL),
        # The paths of the API already start with it.
        address=address.removesuffix("/v1"),
        key=_secret(table, "key"),
        token=_secret(table, "token"),
        seats=table.get("seats", DEFAULT_SEATS),
        price=table.get("price"),
    )


def _read_openai(name: str, table: Mapping[str, Any]) -> Profile:
    for needed, example in (("address", "http://127.0.0.1:11434/v1"), ("model", "qwen3:8b")):
        if needed not in table:
            raise ValueError(f"needs {needed}, such as {example}")
    if "token" in table or "token_file" in table:
        raise ValueError("has a token, which only claude supports; set key or key_file")
    if "key" in table and "key_file" in table:
        raise ValueError("has key and key_file; set only one")
    address = clean_address(table["address"])
    return Profile(
        name=name,
        engine="openai",
        model=table["model"],
        address=address,
        key=_secret(table, "key"),
        seats=table.get("seats", LOCAL_SEATS if is_near(address) else DEFAULT_SEATS),
        price=table.get("price"),
        images=table.get("images"),
    )


def _read_demo(name: str, table: Mapping[str, Any]) -> Profile:
    if unsupported := sorted(set(table) - {"engine", "seats"}):
        raise ValueError(f"has {unsupported[0]}, which the demo does not support")
    return Profile(name=name, engine="demo", model="demo", seats=table.get("seats"))


_READERS = {"claude": _read_claude, "openai": _read_openai, "demo": _read_demo}


def clean_address(address: str) -> str:
    """Validate an address; errors do not quote it, because it may contain a password."""
    address = address.strip().rstrip("/")
    try:
        parts = urlsplit(address)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        is_whole = False
    if not is_whole or parts.query or parts.fragment:
        raise ValueError("has an invalid address; use https://host or http://host:1234")
    if parts.username is not None or parts.password is not None:
        raise ValueError("has a user or password in its address; use key or key_file for secrets")
    return address


def _secret(table: Mapping[str, Any], field: str) -> SecretStr | None:
    if field in table:
        return SecretStr(clean_secret(table[field]))
    if f"{field}_file" not in table:
        return None
    path: Path = absolute(table[f"{field}_file"])
    try:
        return SecretStr(clean_secret(read_text(path, f"a {field}_file:")))
    except BadSetting as error:
        raise ValueError(f"has {error}") from None


def clean_secret(text: str) -> str:
    """Strip and validate a secret that is sent in a request header."""
    text = text.strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("has a key or token that is empty or contains spaces")
    return text


Profiles = Annotated[
    dict[str, Profile],
    BeforeValidator(read_profiles),
    Takes(
        "a table of profiles: engine (claude, openai or demo), model, key or key_file,"
        " token or token_file, address, seats, price, images"
    ),
    Secret(),
]
