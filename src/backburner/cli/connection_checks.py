"""Doctor's checks of connections, by what a running server knows of them."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from backburner.cli.client import Server
from backburner.cli.findings import Finding, Level
from backburner.cli.output import local_time, printable
from backburner.cli.server_options import read_client_file
from backburner.core.connections.scopes import name_scopes
from backburner.core.errors import BackburnerError
from backburner.settings import Settings

TIMEOUT_SECONDS = 2.0
_CHECK = "connections"


def check_connections(settings: Settings) -> Iterator[Finding]:
    """Report connections that are signed out or failing, and tools that wait for their owner."""
    connections = list[Any]()
    # Without a server, nobody knows.
    with suppress(BackburnerError, KeyError, TypeError):
        stored = read_client_file(str(settings.data))
        server = Server(str(stored["address"]), str(stored["token"]), TIMEOUT_SECONDS)
        connections = list(server.items("/api/connections"))
    findings = [finding for one in connections if (finding := _check(one)) is not None]
    yield from findings
    good = len(connections) - len(findings)
    if good:
        count = "1 connection works" if good == 1 else f"{good} connections work"
        yield Finding(_CHECK, f"{count}, as far as was tried.")


def _check(connection: Any) -> Finding | None:
    name, withheld = connection["name"], connection["counts"]["withheld"]
    if connection["disabled"]:
        return Finding(_CHECK, f"{name} is disabled.", Level.NOTE)
    if connection["state"] == "signing_in":
        hint = f"Run `backburner connect {name}`."
        return Finding(_CHECK, f"{name}: you have not signed in yet.", Level.NOTE, hint)
    if connection["state"] == "signed_out":
        hint = f"Run `backburner connect {name}`."
        scopes = name_scopes(connection["wanted_scopes"])
        why = f"wants further permissions: {scopes}" if scopes else "needs you to sign in again"
        return Finding(_CHECK, f"{name} {why}.", Level.PROBLEM, hint)
    if connection["last_error"]:
        when = local_time(connection["last_error_at"])
        error = connection["last_error"]
        stop = "" if error.endswith((".", "?", "!")) else "."
        message = printable(f"{name} failed at {when}: {error}{stop}")
        hint = f"Try it with `backburner connections refresh {name}`."
        return Finding(_CHECK, message, Level.PROBLEM, hint)
    if withheld:
        count = "1 new or changed tool" if withheld == 1 else f"{withheld} new or changed tools"
        message = f"{name}: agents do not get {count} before you say so."
        hint = f"See them with `backburner connections accept {name}`."
        return Finding(_CHECK, message, Level.NOTE, hint)
    return None
