"""`backburner connections import`: take over the servers in the files of other MCP clients."""

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import click

from backburner.cli.client import Server
from backburner.cli.command_name import name_commands
from backburner.cli.commands.connections import import_program
from backburner.cli.commands.connections.client_files import (
    PLACES,
    FoundFile,
    find_files,
    read_file,
)
from backburner.cli.commands.connections.import_program import Choices
from backburner.cli.output import print_json, print_line, printable
from backburner.cli.server_options import json_option, with_server
from backburner.core.connections.imports.client_files import inputs_of, resolve, variables_of
from backburner.core.connections.imports.client_server import (
    ClientServer,
    ImportedProgram,
    ImportedServer,
    LeftOut,
)
from backburner.core.connections.imports.references import Values
from backburner.core.connections.naming import check_title, check_url, is_same_url, make_name
from backburner.core.errors import BackburnerError, BadRequest, NotAllowed, NotFound
from backburner.core.validation import escape_hidden

PATH = "/api/connections"


class Outcome(StrEnum):
    IMPORTED = "imported"
    KNOWN = "there already"
    LEFT_OUT = "left out"
    DECLINED = "declined"
    PLANNED = "to import"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    #: Empty: its file could not be read.
    server: str = ""
    file: str
    project: str = ""
    #: The name of the connection; empty: there is none.
    connection: str = ""
    outcome: Outcome
    detail: str = ""


@dataclass(slots=True, kw_only=True)
class Import:
    """One run of the command: what it was told, and what there is by now."""

    server: Server
    choices: Choices
    names: Mapping[str, str]
    dry_run: bool
    is_sure: bool
    #: Connections by name.
    known: dict[str, Any] = field(default_factory=dict)


@click.command("import")
@click.argument("file", required=False)
@click.option("--from", "client", type=click.Choice(list(PLACES)), help="Read this client's file.")
@click.option("--only", metavar="SERVER", multiple=True, help="Only this server; repeatable.")
@click.option(
    "--name",
    "names",
    metavar="SERVER=NAME",
    multiple=True,
    help="Name of the connection to a server; repeatable.",
)
@click.option(
    "--version",
    "versions",
    metavar="PACKAGE=VERSION",
    multiple=True,
    help="Exact version of a package, where the file has none; repeatable.",
)
@click.option("--read", "readable", metavar="PATH", multiple=True, help="Let programs read this.")
@click.option("--write", "writable", metavar="PATH", multiple=True, help="Let them change this.")
@click.option("--network", is_flag=True, help="Let programs use the network.")
@click.option("--dry-run", is_flag=True, help="Say what would be imported, and import nothing.")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask for servers; programs are asked.")
@json_option
@with_server
def import_servers(
    server: Server,
    *,
    file: str | None,
    client: str | None,
    only: tuple[str, ...],
    as_json: bool,
    dry_run: bool,
    is_sure: bool,
    **options: Any,
) -> None:
    """Import the servers of other MCP clients.

    FILE is a file such as .mcp.json. Without one, the files of Claude Desktop, Claude Code, Cursor,
    VS Code and Windsurf in your home folder are read. Keys go into the vault. A program is shown
    whole, asked for by itself, and only imported on the machine of the server.
    """
    if file is not None and client is not None:
        raise click.UsageError("Name a file, or pass --from.")
    may_ask = sys.stdin.isatty() and not dry_run
    work = Import(
        server=server,
        choices=Choices(
            versions=_read_pairs("--version", options["versions"]),
            readable=options["readable"],
            writable=options["writable"],
            network=options["network"],
            may_ask=may_ask,
        ),
        names=_read_pairs("--name", options["names"]),
        dry_run=dry_run,
        is_sure=is_sure,
        known={one["name"]: one for one in server.items(PATH)},
    )
    results = list[Result]()
    files = [_read(path, is_named=file is not None) for path in find_files(file, client)]
    _check_names(only, [one for one in files if isinstance(one, FoundFile)])
    for one in files:
        for result in _import_file(work, one, only):
            results.append(result)
            if not as_json:
                print_line(printable(_describe(result)))
    if as_json:
        print_json([asdict(result) for result in results])
        return
    counts = Counter(result.outcome for result in results)
    totals = [f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome]]
    print_line(", ".join(totals) or "There are no servers.")


def _read(path: Path, *, is_named: bool) -> FoundFile | Result:
    try:
        return read_file(path)
    except BackburnerError as error:
        if is_named:
            raise
        # There may be other files.
        return Result(file=str(path), outcome=Outcome.LEFT_OUT, detail=str(error))


def _check_names(only: Sequence[str], files: Sequence[FoundFile]) -> None:
    there = {server.name for found in files for server in found.content.servers}
    for name in only:
        if name not in there:
            names = ", ".join(sorted(there)) or "none"
            raise NotFound(f"No file has a server {name[:80]}.", hint=f"There are: {names}.")


def _import_file(work: Import, found: FoundFile | Result, only: Sequence[str]) -> Iterator[Result]:
    if isinstance(found, Result):
        yield found
        return
    refusal = _find_refusal(work, found)
    for one in found.content.servers:
        if only and one.name not in only:
            continue
        result = Result(
            server=one.name, file=str(found.path), project=one.project, outcome=Outcome.LEFT_OUT
        )
        try:
            yield _import_one(work, found, one, refusal, result)
        except BackburnerError as error:
            yield replace(result, detail=str(error))


def _find_refusal(work: Import, found: FoundFile) -> BackburnerError | None:
    """Ask the server whether agents could have written a file; None: they could not."""
    refusal: BackburnerError | None = None
    # A server that may be on another machine follows no links.
    for path in dict.fromkeys((found.path, found.path.resolve())):
        try:
            work.server.post(f"{PATH}/programs/source", {"path": str(path)})
        except NotAllowed as error:
            refusal = error
        except BackburnerError as error:
            return error
    return refusal


def _import_one(
    work: Import,
    found: FoundFile,
    given: ClientServer,
    refusal: BackburnerError | None,
    result: Result,
) -> Result:
    if isinstance(given, LeftOut):
        return replace(result, detail=given.reason)
    if refusal is not None and isinstance(given, ImportedProgram):
        raise refusal
    if refusal is not None and not isinstance(refusal, NotAllowed) and variables_of(given):
        # Whoever wrote it would be sent what the variables have.
        raise refusal
    ready = resolve(given, Values(variables=os.environ, inputs=_ask_inputs(work, found, given)))
    if isinstance(ready, LeftOut):
        return replace(result, detail=ready.reason)
    if isinstance(ready, ImportedProgram):
        return _import_program(work, ready, result)
    return _import_server(work, given, ready, result)


def _import_server(
    work: Import, given: ClientServer, ready: ImportedServer, result: Result
) -> Result:
    url = check_url(ready.url)
    same = _find_same(work, ready, url)
    if same is not None:
        return replace(result, outcome=Outcome.KNOWN, connection=same["name"])
    name = _choose_name(work, ready.name, url)
    result = replace(result, connection=name)
    if work.dry_run:
        return replace(result, outcome=Outcome.PLANNED, detail=url)
    text = [f"{ready.name}, a server ({result.file}):", f"    {url}"]
    if ready.headers:
        text.append(f"It is sent the headers {', '.join(ready.headers)}.")
    variables = variables_of(given)
    if variables:
        text.append(f"They have the values of {', '.join(variables)}.")
    # Nobody has seen where a file sends what is not in it.
    is_agreed = work.is_sure and not (variables or inputs_of(given))
    if not is_agreed and not _agree(work, "\n".join(text)):
        return replace(result, outcome=Outcome.DECLINED, connection="")
    body = {"url": url, "name": name, "title": check_title(ready.name), "headers": ready.headers}
    check = work.server.post(PATH, body)
    added = _added(work, check, result)
    if check["connection"]["state"] == "signing_in" and ready.client_id:
        # Its secret, if it has one, is given there too.
        command = f"backburner connect {added.connection} --client-id {ready.client_id}"
        return replace(added, detail=f"sign in with `{command}`")
    return added


def _import_program(work: Import, ready: ImportedProgram, result: Result) -> Result:
    program = import_program.prepare(ready, work.choices)
    name = work.names.get(ready.name) or make_name(ready.name)
    body = {
        "name": name,
        "title": check_title(ready.name),
        **asdict(program),
        "source": result.file,
    }
    if work.server.post(f"{PATH}/programs/check", body)["known"]:
        return replace(result, outcome=Outcome.KNOWN, connection=name)
    result = replace(result, connection=name)
    if work.dry_run:
        shown = import_program.show(ready, program, result.file)
        return replace(result, outcome=Outcome.PLANNED, detail=shown)
    if not work.choices.may_ask:
        raise BadRequest("A program is asked for by itself.", hint="Import it in a terminal.")
    if not _agree(work, import_program.show(ready, program, result.file)):
        return replace(result, outcome=Outcome.DECLINED, connection="")
    return _added(work, work.server.post_once(f"{PATH}/programs", body), result)


def _added(work: Import, check: Any, result: Result) -> Result:
    connection = check["connection"]
    work.known[connection["name"]] = connection
    detail = f"{connection['counts']['offered']} tools"
    if connection["state"] == "signing_in":
        detail = f"sign in with `backburner connect {connection['name']}`"
    if check["error"]:
        command = f"`backburner connections refresh {connection['name']}`"
        stop = "" if check["error"].endswith((".", "?", "!")) else "."
        detail = f"it does not work yet: {check['error']}{stop} Try again: {command}"
    return replace(result, outcome=Outcome.IMPORTED, connection=connection["name"], detail=detail)


def _choose_name(work: Import, name: str, url: str) -> str:
    chosen = work.names.get(name) or make_name(name)
    if chosen in work.known:
        is_same = is_same_url(work.known[chosen]["url"], url)
        what = "without these headers" if is_same else "to another server"
        raise BadRequest(
            f"There is a connection {chosen} already, {what}.",
            hint=f"Choose a name: --name {name}=OTHER",
        )
    return chosen


def _agree(work: Import, text: str) -> bool:
    if not work.choices.may_ask:
        hint = "Import it in a terminal." if work.is_sure else "Add --yes."
        raise BadRequest("There is no terminal to ask.", hint=hint)
    for line in text.split("\n"):
        click.echo(escape_hidden(line), err=True)
    return click.confirm("Import it?", default=False, err=True)


def _ask_inputs(work: Import, found: FoundFile, given: ClientServer) -> Mapping[str, str]:
    if work.dry_run:
        return dict.fromkeys(inputs_of(given), "typed in")
    if not work.choices.may_ask:
        return {}
    inputs = found.content.inputs
    typed = dict[str, str]()
    for name in inputs_of(given):
        known = inputs.get(name)
        text = f"{given.name}: {known.description if known else ''}".rstrip(": ") or name
        # All of it is hidden: files call keys what they like.
        typed[name] = click.prompt(printable(text), hide_input=True, err=True)
    return typed


def _find_same(work: Import, ready: ImportedServer, url: str) -> Any:
    """Find the connection to a server that has all of its headers; None: there is none.

    Where a name was chosen, only the connection of that name can be the same.
    """
    wanted = {name.casefold() for name in ready.headers}
    chosen = work.names.get(ready.name)
    for one in work.known.values():
        has_keys = wanted <= {name.casefold() for name in one["headers"]}
        if is_same_url(one["url"], url) and has_keys and chosen in (None, one["name"]):
            return one
    return None


def _read_pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    pairs = [text.rpartition("=") for text in given]
    if not all(name and value for name, _, value in pairs):
        raise click.UsageError(f"Write {option} NAME=VALUE.")
    return {name: value for name, _, value in pairs}


def _describe(result: Result) -> str:
    named = f" as {result.connection}" if result.connection not in ("", result.server) else ""
    detail = f": {name_commands(result.detail)}" if result.detail else "."
    return f"{result.server or result.file}: {result.outcome}{named}{detail}"
