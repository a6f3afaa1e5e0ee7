"""What every command has that talks to a server: where it is, who you are, and how to show it."""

import os
import stat
import tomllib
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from backburner.cli.client import NoServer, NotSignedIn, Server, check_address
from backburner.core.errors import BadSetting

#: Written by a server when it starts, for its owner alone.
CLIENT_NAME = "client.toml"
URL, TOKEN = "BACKBURNER_URL", "BACKBURNER_TOKEN"

Find = Callable[[], Server]
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def talks(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that lead to a server, and the server itself."""

    @wraps(command)
    def with_server(find: Find, **options: Any) -> Any:
        return command(find(), **options)

    return finds(with_server)


def finds(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options, and what finds the server, also one that comes later."""

    @click.option("--url", metavar="ADDRESS", help=f"Of the server. [{URL}]")
    @click.option(
        "--token-file",
        metavar="FILE",
        help=f"With a token, for a server elsewhere; without it, the variable {TOKEN}.",
    )
    @click.option(
        "--data", metavar="FOLDER", help="The data folder of the server. [BACKBURNER_DATA]"
    )
    @wraps(command)
    def with_options(
        *, url: str | None, token_file: str | None, data: str | None, **options: Any
    ) -> Any:
        return command(lambda: find_server(url, token_file, data), **options)

    return with_options


def shows(command: Decorated) -> Decorated:
    """Give a command the option to answer in JSON."""
    return click.option("--json", "in_json", is_flag=True, help="For scripts.")(command)


def find_server(url: str | None, token_file: str | None, data: str | None) -> Server:
    """Find the server that was named, else the one whose data folder this is."""
    address = url or os.environ.get(URL)
    token = _read_token(token_file)
    if address is None:
        kept = _read_client(data)
        return Server(str(kept["address"]), token or str(kept["token"]))
    check_address(address)
    if not token:
        raise NotSignedIn(
            "There is no token for that server.",
            hint=f"Give one with --token-file, or in {TOKEN}.",
        )
    return Server(address.rstrip("/"), token)


def _read_token(file: str | None) -> str:
    if file is None:
        return os.environ.get(TOKEN, "").strip()
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetting(f"--token-file {file} cannot be read: {error}.") from None


def _read_client(data: str | None) -> dict[str, Any]:
    # Late: settings take longer to load than a server takes to answer.
    from backburner.settings import find_data_folder  # noqa: PLC0415

    path = find_data_folder(data=data) / CLIENT_NAME
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise BadSetting(
                f"{path} holds a secret and can be read by others.", hint=f"Run: chmod 600 {path}"
            )
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        return {name: found[name] for name in ("address", "token")}
    except FileNotFoundError:
        raise NoServer(
            f"No Backburner has run with the data folder {path.parent}.",
            hint="Start it with `backburner up`, or name one with --data or --url.",
        ) from None
    except (OSError, ValueError, KeyError):
        raise BadSetting(
            f"{path} cannot be read.", hint="Remove it and start `backburner up` again."
        ) from None
