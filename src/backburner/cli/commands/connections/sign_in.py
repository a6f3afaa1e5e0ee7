"""Signing in to the server of a connection from a terminal, in a browser on any machine."""

import select
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import click

from backburner.cli.client import NoServer, NotSignedIn, Server
from backburner.cli.output import printable
from backburner.core.errors import BackburnerError, BadRequest, NotAllowed, NotFound

#: How long the server waits for the browser, where nothing can be typed; and how often it is asked
#: where it can.
WAIT_SECONDS, POLL_SECONDS = 20, 1
#: How long the server may be away, as it is while it restarts.
AWAY_SECONDS = 30
PATH = "/api/connections"
#: As shells report SIGINT.
INTERRUPTED = 130


class Interrupted(BackburnerError):
    """Interrupted."""

    exit_code = INTERRUPTED


def sign_in_first(server: Server, connection: Any, body: Mapping[str, Any]) -> Any:
    """Sign in to a connection that has just been added, or remove it if nobody could."""
    try:
        begun = _begin(server, connection, body)
    except BackburnerError:
        server.delete(f"{PATH}/{connection['id']}")
        raise
    try:
        return _wait(server, connection, begun)
    except KeyboardInterrupt:
        name = connection["name"]
        raise Interrupted(
            f"Interrupted. {name} is added but not signed in: `backburner connect {name}`,"
            f" or `backburner disconnect {name}`."
        ) from None


def sign_in(server: Server, connection: Any, body: Mapping[str, Any]) -> Any:
    """Print the address to open, and wait until somebody has signed in; return the check.

    The browser comes back to the server, if it can reach it. Else its final address is pasted here.
    """
    return _wait(server, connection, _begin(server, connection, body))


def _begin(server: Server, connection: Any, body: Mapping[str, Any]) -> Any:
    # Not stored by the server for repeated requests: there is a secret in the response.
    return server.post_once(f"{PATH}/{connection['id']}/sign-in", dict(body))


def _wait(server: Server, connection: Any, begun: Any) -> Any:
    path = f"{PATH}/{connection['id']}/sign-in"
    _explain(connection, begun)
    can_type, check, away_since = sys.stdin.isatty(), None, None
    line: str | None = ""
    while check is None:
        waiting = {"secret": begun["secret"], "seconds": 0 if can_type else WAIT_SECONDS}
        try:
            if line:
                check = _finish(server, line, begun["secret"])
            else:
                # The server says when the time is over.
                check = server.post_once(f"{path}/wait", waiting)["check"]
        except (NoServer, NotSignedIn) as error:
            away_since = away_since or time.monotonic()
            server = _find_again(server, connection, error, away_since)
            continue
        away_since, line = None, ""
        if check is None and can_type:
            line = _read_typed()
            # None: nobody will type anything.
            can_type = line is not None
    return check


def _find_again(
    server: Server, connection: Any, error: BackburnerError, away_since: float
) -> Server:
    """Wait a moment for a server that may be restarting, and find it with its new token."""
    if time.monotonic() - away_since > AWAY_SECONDS:
        hint = f"Continue with `backburner connect {connection['name']}`."
        raise NoServer(error.message, hint=hint) from None
    time.sleep(POLL_SECONDS)
    found = server if server.find_again is None else server.find_again()
    if isinstance(error, NotSignedIn) and found.token == server.token:
        raise error
    return replace(found, find_again=server.find_again)


def _explain(connection: Any, begun: Any) -> None:
    scopes = f" It will be allowed: {', '.join(begun['scopes'])}." if begun["scopes"] else ""
    server = urlsplit(connection["url"]).netloc
    goes_to = f"{begun['token_host']} (authorization server {begun['issuer']})"
    lines = [
        f"Sign in to {connection['title']} at {begun['host']}.{scopes}",
        f"The sign-in goes to {goes_to}; {server} gets the access.",
        "Open within 10 minutes:",
        f"  {begun['url']}",
        'Waiting. If the last page says "One more step", or does not open, paste its address here.',
    ]
    for line in lines:
        # On stderr: stdout may be a file that gets the result.
        click.echo(printable(line), err=True)


def _read_typed() -> str | None:
    """Wait a moment for a line; None: the input has ended."""
    if not select.select([sys.stdin], [], [], POLL_SECONDS)[0]:
        return ""
    line = sys.stdin.readline()
    return line.strip() if line else None


def _finish(server: Server, address: str, secret: str) -> Any:
    body = {"address": address, "secret": secret}
    try:
        return server.post_once(f"{PATH}/finish-sign-in", body)["check"]
    except NotSignedIn:
        raise
    except (BadRequest, NotAllowed) as error:
        # A typing mistake, or no use now; the sign-in can still be finished.
        click.echo(printable(str(error)), err=True)
    except NotFound:
        text = "This address is of an earlier sign-in. Paste the one of the page opened now."
        click.echo(text, err=True)
    return None
