"""`backburner connect` and `disconnect`: add a connection, sign in again, remove one."""

import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from backburner.cli.client import Server
from backburner.cli.command_name import name_commands
from backburner.cli.commands.connections.catalogue import CATALOGUE_PATH
from backburner.cli.commands.connections.connections import (
    PATH,
    describe_tools,
    find_connection,
    find_if_any,
    print_left_out,
)
from backburner.cli.commands.connections.sign_in import sign_in, sign_in_first
from backburner.cli.confirmation import confirm, yes_option
from backburner.cli.output import print_json, print_line, printable
from backburner.cli.server_options import json_option, with_server
from backburner.core.connections.naming import check_name, check_title
from backburner.core.errors import BadRequest, ConnectionFailed, NotFound

AUTHORIZATION = "authorization"
#: The state of a connection that nobody has signed in to yet.
SIGNING_IN = "signing_in"


@click.command("connect")
@click.argument("server_name", metavar="SERVER")
@click.option("--name", metavar="NAME", help="Name of the connection. [default: from the address]")
@click.option("--title", metavar="TEXT", help="Title of the connection.")
@click.option(
    "--header",
    "typed",
    metavar="HEADER",
    multiple=True,
    help="Send this header with every request. Its value is asked for, and not shown. Repeatable.",
)
@click.option(
    "--header-file",
    "files",
    metavar="HEADER=FILE",
    multiple=True,
    help="The same, with the value in a file; `-` is stdin.",
)
@click.option("--client-id", metavar="ID", help="OAuth client that you have registered there.")
@click.option(
    "--client-secret-file",
    metavar="FILE",
    help="File with the secret of that client; `-` is stdin.",
)
@click.option(
    "--issuer",
    metavar="URL",
    help="Authorization server that you expect and trust; another one is refused.",
)
@click.option(
    "--scope", "scopes", metavar="SCOPE", multiple=True, help="Scope to ask for too; repeatable."
)
@click.option("--not-in-chats", is_flag=True, help="Only work that names it may use it.")
@json_option
@with_server
def connect(
    server: Server,
    *,
    server_name: str,
    typed: tuple[str, ...],
    files: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Connect to an MCP server, or sign in to one again.

    SERVER is an address that begins with https://, a name in the catalogue of well-known servers
    (`backburner connections catalogue`), a program that the operator has defined, or the name of a
    connection that you have. The value of the header Authorization may be the bare token.

    Where a server wants a sign-in, the address to open is printed. If the browser is on another
    machine, paste its last address here.
    """
    if not server_name.strip():
        raise click.UsageError("SERVER is empty.")
    if options["name"]:
        check_name(options["name"])
    if options["title"]:
        check_title(options["title"])
    known = None if _is_address(server_name) else find_if_any(server, server_name)
    headers = _read_headers(typed, files, "" if known is None else known["title"])
    client = _read_client(options)
    if known is not None:
        check = _sign_in_again(server, known, headers, client)
    else:
        check = _add(server, server_name, headers, options)
        if check["connection"]["state"] == SIGNING_IN:
            check = sign_in_first(server, check["connection"], client)
    connection = check["connection"]
    if as_json:
        print_json(check)
        return
    name, counts = connection["name"], connection["counts"]
    text = f"Connected {name}: {describe_tools(connection)}."
    if counts["offered"] and not counts["read_only"]:
        text += f" Each call asks first; to change that: `backburner connections tools {name}`"
    print_line(printable(name_commands(text)))
    print_left_out(check)
    if check["error"]:
        raise ConnectionFailed(check["error"], hint=check["hint"])


@click.command("disconnect")
@click.argument("name")
@yes_option
@with_server
def disconnect(server: Server, *, name: str, is_sure: bool) -> None:
    """Remove a connection, with its sign-in and the grants for its tools."""
    connection = find_connection(server, name)
    question = f"Remove {connection['name']}? Tasks and jobs that name it are paused."
    confirm(question, is_sure=is_sure)
    host = server.delete(f"{PATH}/{connection['id']}")["not_ended_at"]
    left = f" {host} did not end the sign-in: end it there." if host else ""
    print_line(printable(f"Removed {connection['name']}.{left}"))


def _add(server: Server, name: str, headers: Mapping[str, str], options: Mapping[str, Any]) -> Any:
    entry = None if _is_address(name) else _find_entry(server, name)
    if entry is not None:
        place = {"url": entry["url"]}
        headers = headers or _prepare(entry, options)
    else:
        place = {"url": name} if _is_address(name) else {"program": name}
    body = {
        **place,
        "name": options["name"] or "",
        "title": options["title"] or ("" if entry is None else entry["title"]),
        "headers": headers,
        "in_chats": not options["not_in_chats"],
    }
    try:
        return server.post(PATH, body)
    except NotFound as error:
        if "program" not in place:
            raise
        raise _unknown_server(server, name, error.hint) from None


def _unknown_server(server: Server, name: str, programs: str) -> NotFound:
    """Say what a name could have meant; `programs` says which ones the operator has defined."""
    names = [one["name"] for path in (CATALOGUE_PATH, PATH) for one in server.items(path)]
    if "." in name or "/" in name:
        hint = f"Did you mean https://{name}?"
    elif matches := get_close_matches(name, names, n=1):
        hint = f"Did you mean {matches[0]}?"
    else:
        hint = f"See `backburner connections catalogue`. {programs}".strip()
    return NotFound(
        f"{name} is no address, no server of the catalogue, no program and no connection.",
        hint=hint,
    )


def _sign_in_again(
    server: Server, connection: Any, headers: Mapping[str, str], client: Mapping[str, Any]
) -> Any:
    if not headers and connection["auth"] == "header":
        headers = _read_headers(connection["headers"], (), connection["title"])
    if headers:
        return server.post_once(f"{PATH}/{connection['id']}/headers", {"headers": headers})
    return sign_in(server, connection, client)


def _read_client(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Read the OAuth client and the scopes to ask for, as the body of a sign-in."""
    body: dict[str, Any] = {"scopes": list(options["scopes"]), "issuer": options["issuer"] or ""}
    if options["client_id"]:
        body["client_id"] = options["client_id"]
    if options["client_secret_file"]:
        body["client_secret"] = _read(options["client_secret_file"])
    return body


def _find_entry(server: Server, name: str) -> Any:
    """Find a server in the catalogue; None: it is not there."""
    return next((one for one in server.items(CATALOGUE_PATH) if one["name"] == name), None)


def _prepare(entry: Any, options: Mapping[str, Any]) -> dict[str, str]:
    """Say what a well-known server wants, and ask for its key if it takes one."""
    if entry["own_client"] and not options["client_id"]:
        raise BadRequest(
            f"{entry['title']} wants an OAuth client of your own. {entry['before']}",
            hint=f"See {entry['docs']}. Then: `backburner connect {entry['name']} --client-id ID`",
        )
    if entry["before"]:
        click.echo(printable(f"{entry['before']} See {entry['docs']}."), err=True)
    if entry["auth"] != "header":
        return {}
    header = entry["header"]
    return {header: entry["header_prefix"] + _ask(header, entry["title"]).strip()}


def _is_address(text: str) -> bool:
    return "://" in text


def _read_headers(typed: Sequence[str], files: Sequence[str], title: str) -> dict[str, str]:
    headers = {name: _ask(name, title) for name in typed}
    for given in files:
        name, separator, path = given.partition("=")
        if not separator or not path:
            raise click.UsageError("Write --header-file HEADER=FILE.")
        headers[name] = _read(path)
    return {name: _with_scheme(name, value) for name, value in headers.items()}


def _ask(name: str, title: str) -> str:
    if not sys.stdin.isatty():
        raise BadRequest(
            f"The value of {name} is typed in a terminal.", hint="Use --header-file HEADER=FILE."
        )
    is_token = title and name.casefold() == AUTHORIZATION
    what = f"Token for {title}" if is_token else f"Value of {name}"
    value: str = click.prompt(printable(f"{what} (not shown)"), hide_input=True, err=True)
    return value


def _read(path: str) -> str:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise BadRequest(f"Cannot read {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise BadRequest(f"{path} is not UTF-8 text.") from None
    return text.strip()


def _with_scheme(name: str, value: str) -> str:
    is_bare = name.casefold() == AUTHORIZATION and " " not in value.strip()
    return f"Bearer {value.strip()}" if is_bare else value
