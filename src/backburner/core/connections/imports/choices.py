"""Servers of a client's file, as a user far from that file chooses among them.

Only addresses are taken over: a program would run where its user does not see it. No variable is
read: values that the file only refers to are typed in.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from backburner.core.connections.headers import check_header_names, check_headers
from backburner.core.connections.imports.client_server import (
    ClientFile,
    ClientServer,
    ImportedProgram,
    ImportedServer,
    LeftOut,
)
from backburner.core.connections.imports.references import (
    INPUT,
    Values,
    find_inputs,
    find_needed,
    find_variables,
)
from backburner.core.connections.naming import check_url
from backburner.core.errors import BackburnerError, BadRequest
from backburner.core.validation import escape_hidden

MAX_CONTENT_CHARS = 500_000
MAX_ASKED = 20
MAX_ASKED_CHARS = 200
MAX_TYPED_CHARS = 8_000
MAX_CLIENT_ID_CHARS = 200
_THERE = "Import it on its own machine: `backburner connections import`."


class ImportKind(StrEnum):
    SERVER = "server"
    PROGRAM = "program"  #: Imported on the command line of the server's machine only.
    LEFT_OUT = "left_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedValue:
    """A value that a file only refers to: of a variable, or of what is typed in."""

    #: As the file refers to it.
    key: str
    label: str
    #: False: the file has another value for it.
    is_needed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportChoice:
    """A server of a file, without its secrets."""

    #: Its place in the file.
    number: int
    kind: ImportKind
    name: str
    project: str = ""
    url: str = ""
    #: The names of the headers whose values would be stored.
    headers: Sequence[str] = ()
    asks: Sequence[AskedValue] = ()
    #: The OAuth client that the file names.
    client_id: str = ""
    #: Why it is left out.
    reason: str = ""


def list_choices(file: ClientFile) -> Sequence[ImportChoice]:
    return [_describe(number, one, file) for number, one in enumerate(file.servers)]


def fill_in(file: ClientFile, number: int, typed: Mapping[str, str]) -> ImportedServer:
    """Return a server with its values. Raises `BadRequest` if it is none, or if one is missing."""
    if number >= len(file.servers):
        raise BadRequest("The file has no such server.", hint="Look at the file again.")
    choice = _describe(number, file.servers[number], file)
    server = file.servers[number]
    if not isinstance(server, ImportedServer) or choice.kind is not ImportKind.SERVER:
        raise BadRequest(f"{choice.name} is not imported here. {choice.reason}".strip())
    for asked in choice.asks:
        if asked.is_needed and not typed.get(asked.key, "").strip():
            raise BadRequest(f"The value of {asked.label} is missing.", hint="Type it in.")
    return _fill(_plain(server), typed)


def _describe(number: int, server: ClientServer, file: ClientFile) -> ImportChoice:
    named = ImportChoice(
        number=number,
        kind=ImportKind.LEFT_OUT,
        name=server.name,
        project=server.project[:MAX_ASKED_CHARS],
    )
    if isinstance(server, LeftOut):
        return replace(named, reason=escape_hidden(server.reason))
    if isinstance(server, ImportedProgram):
        return replace(named, kind=ImportKind.PROGRAM)
    try:
        plain = _plain(server)
        asks = list(_list_asked(plain, file))
        # Any values show whether there is another fault.
        filled = _fill(plain, {asked.key: "x" for asked in asks})
        check_headers(filled.headers)
    except BackburnerError as error:
        return replace(named, reason=escape_hidden(f"{error.message} {error.hint}".strip()))
    return replace(
        named,
        kind=ImportKind.SERVER,
        url=filled.url,
        headers=sorted(filled.headers),
        asks=asks,
        client_id=filled.client_id,
    )


def _plain(server: ImportedServer) -> ImportedServer:
    """Return a server with its address, and with what can be known of its client here."""
    check_header_names(server.headers)
    if find_inputs(server.url) or find_needed(server.url):
        raise BadRequest("A part of its address is not in the file.", hint=_THERE)
    client_id = escape_hidden(server.client_id)
    is_known = "${" not in client_id and len(client_id) <= MAX_CLIENT_ID_CHARS
    return replace(
        server,
        url=_check_address(Values().resolve(server.url, "The address")),
        client_id=client_id if is_known else "",
        client_secret="",
    )


def _check_address(url: str) -> str:
    try:
        return check_url(url)
    except BadRequest as error:
        if f"{url[:80]!r}" not in error.message:
            raise
        # It may hold a secret, so it is not repeated.
        raise BadRequest("Its address is not that of a server.", hint=error.hint) from None


def _list_asked(server: ImportedServer, file: ClientFile) -> Iterator[AskedValue]:
    texts = server.headers.values()
    needed = {name for text in texts for name in find_needed(text)}
    inputs = dict.fromkeys(name for text in texts for name in find_inputs(text))
    variables = dict.fromkeys(name for text in texts for name in find_variables(text))
    if len(inputs) + len(variables) > MAX_ASKED:
        raise BadRequest(f"It has more than {MAX_ASKED} values to type in.", hint=_THERE)
    if any(len(name) > MAX_ASKED_CHARS for name in (*inputs, *variables)):
        raise BadRequest("The name of a value to type in is too long.", hint=_THERE)
    for name in inputs:
        known = file.inputs.get(name)
        label = known.description if known is not None else ""
        yield AskedValue(
            key=INPUT + name, label=label.strip() or escape_hidden(name), is_needed=True
        )
    for name in variables:
        yield AskedValue(key=name, label=name, is_needed=name in needed)


def _fill(server: ImportedServer, typed: Mapping[str, str]) -> ImportedServer:
    values = Values(
        variables={name: value for name, value in typed.items() if not name.startswith(INPUT)},
        inputs={
            name.removeprefix(INPUT): value
            for name, value in typed.items()
            if name.startswith(INPUT)
        },
    )
    headers = {
        name: values.resolve(text, f"The header {name}") for name, text in server.headers.items()
    }
    return replace(server, headers={name: text for name, text in headers.items() if text.strip()})
