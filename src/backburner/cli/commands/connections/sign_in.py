"""Signing in to the server of a connection from a terminal, in a browser on any machine."""

import select
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import click

from backburner.cli.client import Server
from backburner.cli.output import printable
from backburner.core.errors import BackburnerError, BadRequest

#: How long the server waits for the browser, where nothing can be typed; and how often it is asked
#: where it can.
WAIT_SECONDS, POLL_SECONDS = 20, 1
PATH = "/api/connections"


def sign_in_first(server: Server, connection: Any, body: Mapping[str, Any]) -> Any:
    """Sign in to a connection that has just been added, or remove it if nobody could."""
    try:
        begun = _begin(server, connection, body)
    except BackburnerError:
        server.delete(f"{PATH}/{connection['id']}")
        raise
    return _wait(server, connection, begun)


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
    can_type, check = sys.stdin.isatty(), None
    while check is None:
        waiting = {"secret": begun["secret"], "seconds": 0 if can_type else WAIT_SECONDS}
        # The server says when the time is over.
        check = server.post_once(f"{path}/wait", waiting)["check"]
        if check is not None or not can_type:
            continue
        line = _read_typed()
        # None: nobody will type anything.
        can_type = line is not None
        if line:
            check = _finish(server, line, begun["secret"])
    return check


def _explain(connection: Any, begun: Any) -> None:
    scopes = f" with {' '.join(begun['scopes'])}" if begun["scopes"] else ""
    server = urlsplit(connection["url"]).netloc
    goes_to = f"{begun['token_host']} (authorization server {begun['issuer']})"
    lines = [
        f"Sign in to {connection['title']} at {begun['host']}{scopes}.",
        f"The sign-in goes to {goes_to}; {server} gets the access.",
        "Open within 10 minutes:",
        f"  {begun['url']}",
        "Waiting. If the browser cannot open the last page, paste its address here.",
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
    except BadRequest as error:
        # A typing mistake; the sign-in can still be finished.
        click.echo(printable(str(error)), err=True)
        return None
