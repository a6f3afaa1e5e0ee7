"""The options of every command that talks to a server: its address, the token, the output."""

import os
import stat
import tomllib
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from backburner.cli.client import NoServer, NotSignedIn, Server, check_address
from backburner.core.errors import BadSetting
from backburner.data_folder import CLIENT_FILE, find_data_folder

URL_VARIABLE, TOKEN_VARIABLE = "BACKBURNER_URL", "BACKBURNER_TOKEN"

FindServer = Callable[[], Server]
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def with_server(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select a server, and pass the server to the command."""

    @wraps(command)
    def wrapper(find_server: FindServer, **options: Any) -> Any:
        return command(replace(find_server(), find_again=find_server), **options)

    return with_server_finder(wrapper)


def with_server_finder(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the same options, but pass a function, so that a restarted server is found again."""

    @click.option("--url", metavar="URL", help=f"Address of the server. [{URL_VARIABLE}]")
    @click.option(
        "--token-file",
        metavar="FILE",
        help=f"File with an API token, for a server on another machine; or set {TOKEN_VARIABLE} to"
        " the token.",
    )
    @click.option("--data", metavar="FOLDER", help="Data folder of the server. [BACKBURNER_DATA]")
    @wraps(command)
    def wrapper(
        *, url: str | None, token_file: str | None, data: str | None, **options: Any
    ) -> Any:
        return command(lambda: find_server(url, token_file, data), **options)

    return wrapper


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
missed_option = click.option(
    "--missed",
    "catch_up",
    type=click.Choice(["once", "skip"]),
    help="Times missed while nothing could run: run once for all of them, or skip them.",
)


def limit_option(default: int, *, maximum: int | None = None) -> Callable[[Decorated], Decorated]:
    return click.option(
        "--limit",
        metavar="NUMBER",
        type=click.IntRange(1, maximum),
        default=default,
        show_default=True,
        help="Maximum number of entries.",
    )


def find_server(url: str | None, token_file: str | None, data: str | None) -> Server:
    """Return the server with this address, else the one that uses this data folder."""
    address = url or os.environ.get(URL_VARIABLE)
    token = _read_token(token_file)
    if address is None:
        stored = read_client_file(data)
        return Server(str(stored["address"]), token or str(stored["token"]))
    check_address(address)
    if not token:
        raise NotSignedIn(
            "No token for this server.",
            hint=f"Pass one with --token-file, or set {TOKEN_VARIABLE}.",
        )
    return Server(address.rstrip("/"), token)


def _read_token(file: str | None) -> str:
    if file is None:
        return os.environ.get(TOKEN_VARIABLE, "").strip()
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetting(f"Cannot read --token-file {file}: {error}.") from None


def read_client_file(data: str | None) -> dict[str, Any]:
    path = find_data_folder(data=data) / CLIENT_FILE
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise BadSetting(
                f"{path} holds a secret but other users can read it.",
                hint=f"Run: chmod 600 {path}",
            )
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        return {name: content[name] for name in ("address", "token")}
    except FileNotFoundError:
        raise NoServer(
            f"Found no server for the data folder {path.parent}.",
            hint="Start it with `backburner up`, or select another with --data or --url. With a"
            " second account or a password, commands need a token: create one in the browser, and"
            " pass it with --token-file.",
        ) from None
    except (OSError, ValueError, KeyError):
        raise BadSetting(
            f"Cannot read {path}.", hint="Delete it and restart `backburner up`."
        ) from None
