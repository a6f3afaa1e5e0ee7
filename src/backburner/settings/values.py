"""The types of settings, and their validation."""

import os
import re
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from backburner.core.allowance import AllowanceScope, parse_limit, parse_price
from backburner.data_folder import PREFIX, absolute

MAX_DURATION = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class Takes:
    """Describes the valid values of a setting, for errors and the reference page."""

    text: str
    #: A term that the reference page explains once, above its table.
    term: str = ""


@dataclass(frozen=True, slots=True)
class Secret:
    """Marks a setting that is never shown; `BACKBURNER_<NAME>_FILE` can name a file with it."""


def _refuse_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError  # noqa: TRY004 (only this becomes a line about the setting)
    return value


def _lowercase(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _parse_duration(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)\s*(ms|s|m|h|d|)", str(value).strip())
    if isinstance(value, bool) or not match:
        raise ValueError
    unit = {"ms": 0.001, "s": 1, "": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]
    return timedelta(seconds=float(match[1]) * unit)


def _refuse_empty_path(value: object) -> object:
    # An empty path would be the current folder, and no path contains a null character.
    if value == "" or "\0" in str(value):
        raise ValueError
    return value


def _check_folder(path: Path) -> Path:
    if os.path.expanduser(path).startswith("~"):  # noqa: PTH111 (does not raise)
        raise ValueError("there is no such home folder; use an absolute path")
    return absolute(path)


def _check_folder_template(path: str) -> str:
    plain = path.replace("{login}", "login")
    is_plain = plain.startswith("/") and plain == os.path.normpath(plain) and "{" not in plain
    if not is_plain or "{login}" not in path:
        raise ValueError("use absolute paths, with {login} for the login of the account")
    return path


def is_loopback(host: str) -> bool:
    return host == "localhost" or ip_address(host).is_loopback


def _check_host(host: str) -> str:
    if host != "localhost":
        ip_address(host)
    return host


def _check_public_url(url: str) -> str:
    """Normalise to an origin: scheme, host and port."""
    if not url:
        return ""
    parts = urlsplit(url)
    has_more = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme != "https" or not parts.hostname or has_more:
        raise ValueError
    port = parts.port
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"https://{name}" if port in (None, 443) else f"https://{name}:{port}"


def _check_contact(text: str) -> str:
    """Refuse what some push services refuse: names without a dot, spaces and angle brackets."""
    if not text:
        return ""
    is_address = re.fullmatch(r"mailto:[^\s<>@,]+@[\w-]+(\.[\w-]+)+", text)
    parts = urlsplit(text)
    is_url = parts.scheme == "https" and "." in (parts.hostname or "") and "@" not in parts.netloc
    if not text.isascii() or not text.isprintable() or " " in text or not (is_address or is_url):
        raise ValueError
    return text


def _check_file(path: Path | None) -> Path | None:
    return None if path is None else _check_folder(path)


def _check_database_url(url: SecretStr | None) -> SecretStr | None:
    if url is None:
        return None
    # Errors must not quote any part of it: it may contain a password.
    scheme, separator, rest = url.get_secret_value().partition("://")
    scheme = "postgresql" if scheme == "postgres" else scheme
    if not separator or scheme not in ("sqlite", "postgresql"):
        raise ValueError("it must start with sqlite:// or postgresql://")
    if scheme == "postgresql":
        rest = _name_hosts(rest)
    if scheme == "postgresql" and not _has_server(rest):
        raise ValueError(
            "its host or port is unclear; special characters in a password must be percent-encoded"
        )
    return SecretStr(f"{scheme}://{rest}")


def _name_hosts(rest: str) -> str:
    """Move several hosts, as libpq takes them (a:1,b:2), to the query: nobody else reads them.

    Of several servers one can be written; unless told otherwise, that one is used.
    """
    end = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
    user, at, hosts = rest[:end].rpartition("@")
    places = [re.fullmatch(r"(\[[^]]*]|[^:]*)(?::(\d*))?", host) for host in hosts.split(",")]
    if len(places) < 2 or None in places:
        return rest
    names = ",".join(place[1].strip("[]") for place in places if place)
    ports = ",".join(place[2] or "5432" for place in places if place)
    path, _, query = rest[end:].partition("?")
    if "target_session_attrs" not in query:
        query = f"{query}&target_session_attrs=read-write".lstrip("&")
    return f"{user}{at}{path or '/'}?host={names}&port={ports}&{query}"


def _has_server(rest: str) -> bool:
    """Check that host and port can be parsed: a bare #, ?, / or @ in a password hides them."""
    try:
        parts = urlsplit(f"//{rest}")
        _ = parts.port
    except ValueError:
        return False
    is_cut = "@" in parts.path or (not parts.path and "@" in parts.query)
    return not parts.fragment and not is_cut and parts.netloc.count("@") <= 1


def _parse_network(text: object) -> object:
    if not isinstance(text, str):
        return text
    try:
        return ip_network(text.strip())
    except ValueError:
        raise ValueError(f"{text!r} is not a network such as 192.168.1.0/24") from None


def _check_variable_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(f"{name!r} is not a variable name")
    if name.upper().startswith(PREFIX):
        raise ValueError("Backburner's own variables cannot be passed on: they may be secret")
    return name


def _check_tool_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z]{1,40}", name):
        raise ValueError(f"{name!r} is not a tool name such as WebSearch")
    return name


def _check_limit(text: str) -> str:
    parse_limit(text, AllowanceScope.RUN)
    return text


def _check_prices(prices: dict[str, str]) -> dict[str, str]:
    for price in prices.values():
        parse_price(price)
    return prices


Switch = Annotated[bool, Takes("true or false")]
CountOrNone = Annotated[int, BeforeValidator(_refuse_bool), Field(ge=0), Takes("an integer from 0")]
Count = Annotated[int, BeforeValidator(_refuse_bool), Field(ge=1), Takes("an integer from 1")]
Port = Annotated[
    int,
    BeforeValidator(_refuse_bool),
    Field(ge=0, le=65535),
    Takes("an integer from 0 to 65535"),
]
Duration = Annotated[
    timedelta,
    BeforeValidator(_parse_duration),
    Field(gt=timedelta(), le=MAX_DURATION),
    Takes("a duration up to 366d, such as 500ms, 30s, 10m or 2h", term="a duration"),
]
Limit = Annotated[
    str,
    AfterValidator(_check_limit),
    Takes("a limit such as 2.50 USD, 500000 tokens; or none", term="a limit"),
]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"],
    BeforeValidator(_lowercase),
    Takes("debug, info, warning or error"),
]
LogFormat = Annotated[Literal["text", "json"], Takes("text or json")]
Folder = Annotated[
    Path, BeforeValidator(_refuse_empty_path), AfterValidator(_check_folder), Takes("a folder")
]
DatabaseUrl = Annotated[
    SecretStr | None,
    AfterValidator(_check_database_url),
    Takes("a URL such as postgresql://user:password@host/name"),
    Secret(),
]
Host = Annotated[
    str, AfterValidator(_check_host), Takes("an IP address of this machine, or localhost")
]
PublicUrl = Annotated[
    str,
    AfterValidator(_check_public_url),
    Takes("an https URL without a path, such as https://backburner.example"),
]
Contact = Annotated[
    str,
    AfterValidator(_check_contact),
    Takes("mailto: with an e-mail address, or an https URL"),
]
File = Annotated[
    Path | None,
    BeforeValidator(_refuse_empty_path),
    AfterValidator(_check_file),
    Takes("a file"),
]
Prices = Annotated[
    dict[str, str],
    AfterValidator(_check_prices),
    Takes("a table from model name prefix to price, such as 3 in, 15 out"),
]
Commands = Annotated[Literal["confined", "unconfined", "off"], Takes("confined, unconfined or off")]
Folders = Annotated[
    tuple[Annotated[Path, BeforeValidator(_refuse_empty_path), AfterValidator(_check_folder)], ...],
    Takes("a list of folders"),
]
FolderTemplates = Annotated[
    tuple[Annotated[str, AfterValidator(_check_folder_template)], ...],
    Takes("a list of folders such as /srv/{login}"),
]
VariableNames = Annotated[
    tuple[Annotated[str, AfterValidator(_check_variable_name)], ...],
    Takes("a list of names such as LANG"),
]
Network = IPv4Network | IPv6Network
Networks = Annotated[
    tuple[Annotated[Network, BeforeValidator(_parse_network)], ...],
    Takes("a list of networks such as 192.168.1.0/24"),
]
ToolNames = Annotated[
    tuple[Annotated[str, AfterValidator(_check_tool_name)], ...],
    Takes("a list of names such as WebSearch"),
]
