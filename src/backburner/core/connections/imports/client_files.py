"""The files in which MCP clients keep their servers: `.mcp.json` and its relatives.

Claude Desktop, Claude Code, Cursor and Windsurf name them `mcpServers`, VS Code `servers`. Claude
Code's own file has them for each project too. References stay as they are; `resolve` fills them in.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from backburner.core.connections.catalogue import CATALOGUE
from backburner.core.connections.catalogue_entry import find_by_host
from backburner.core.connections.imports.client_server import (
    ClientFile,
    ClientServer,
    ImportedProgram,
    ImportedServer,
    Input,
    LeftOut,
)
from backburner.core.connections.imports.json_text import read_json
from backburner.core.connections.imports.mcp_remote import OLD_TRANSPORT, read_bridge
from backburner.core.connections.imports.packages import read_launch
from backburner.core.connections.imports.references import (
    Values,
    describe_source,
    find_inputs,
    find_variables,
    resolve_plain,
)
from backburner.core.connections.imports.shown_program import (
    check_command,
    check_environment,
    check_values,
)
from backburner.core.errors import BackburnerError, BadRequest
from backburner.core.validation import escape_hidden

MAX_FILE_BYTES = 20_000_000
MAX_SERVERS = 200
MAX_NAME_CHARS = 100
MAX_TEXT_CHARS = 10_000
_SECTIONS = ("mcpServers", "servers")
_URL_KEYS = ("url", "serverUrl", "httpUrl")
_HTTP = frozenset({"http", "remote", "streamable-http", "streamable_http", "streamableHttp"})
#: What would change how a program starts, in words.
_UNSUPPORTED = {
    "cwd": "starts in a folder of its own",
    "envFile": "reads its environment from another file",
    "headersHelper": "gets its headers from a program",
}


def parse(text: str, label: str) -> ClientFile:
    """Read the servers of a file. Raises `BadRequest` if it is not such a file."""
    content = read_json(text, label)
    if not isinstance(content, Mapping):
        raise BadRequest(f"{label} is not an object with servers.")
    found = list(_find_entries(content))
    if not found and not any(name in content for name in _SECTIONS):
        raise BadRequest(
            f"{label} has no servers.", hint="It needs `mcpServers`, or `servers` as in VS Code."
        )
    if len(found) > MAX_SERVERS:
        raise BadRequest(
            f"{label} has {len(found):,} servers; the limit is {MAX_SERVERS}.",
            hint="Copy those that you need to another file.",
        )
    servers = tuple(_read_entry(project, name, entry) for project, name, entry in found)
    return ClientFile(servers=servers, inputs=_read_inputs(content.get("inputs")))


def resolve(server: ClientServer, values: Values) -> ClientServer:
    """Fill in the references of a server; it is left out if one has no value."""
    try:
        if isinstance(server, ImportedServer):
            return _resolve_server(server, values)
        if isinstance(server, ImportedProgram):
            return _resolve_program(server, values)
    except BackburnerError as error:
        reason = f"{error.message} {error.hint}".strip()
        return LeftOut(name=server.name, project=server.project, reason=reason)
    return server


def inputs_of(server: ClientServer) -> Sequence[str]:
    """Return the ids of what is to be typed in for a server."""
    return list(dict.fromkeys(name for text in _filled(server) for name in find_inputs(text)))


def variables_of(server: ClientServer) -> Sequence[str]:
    """Return the names of the variables that a server would be given the values of."""
    return list(dict.fromkeys(name for text in _filled(server) for name in find_variables(text)))


def _filled(server: ClientServer) -> Sequence[str]:
    """Return the texts of a server that references are filled in."""
    if isinstance(server, ImportedServer):
        return [server.url, *server.headers.values(), server.client_id, server.client_secret]
    return [*server.environment.values()] if isinstance(server, ImportedProgram) else []


def _find_entries(content: Mapping[str, Any]) -> Iterator[tuple[str, str, object]]:
    yield from _entries_of("", content)
    # The settings of VS Code have them below `mcp`.
    yield from _entries_of("", content.get("mcp"))
    projects = content.get("projects")
    if isinstance(projects, Mapping):
        for path, project in projects.items():
            yield from _entries_of(path, project)
    # As plugins write it: the servers alone.
    if all(_is_entry(entry) for entry in content.values()):
        yield from (("", name, entry) for name, entry in content.items())


def _entries_of(project: str, content: object) -> Iterator[tuple[str, str, object]]:
    if isinstance(content, Mapping):
        for section in _SECTIONS:
            servers = content.get(section)
            if isinstance(servers, Mapping):
                yield from ((project, name, entry) for name, entry in servers.items())


def _is_entry(entry: object) -> bool:
    return isinstance(entry, Mapping) and any(key in entry for key in ("command", *_URL_KEYS))


def _read_entry(project: str, name: str, entry: object) -> ClientServer:
    project = escape_hidden(project)
    shown = escape_hidden(" ".join(name.split()))
    if not shown:
        return LeftOut(name="", project=project, reason="Its name is empty.")
    if shown != name or len(name) > MAX_NAME_CHARS:
        reason = "Its name has characters that cannot be seen, or is too long."
        return LeftOut(name=shown[:MAX_NAME_CHARS], project=project, reason=reason)
    try:
        return replace(_read_server(name, entry), project=project)
    except BadRequest as error:
        return LeftOut(name=name, project=project, reason=str(error))


def _read_server(name: str, entry: object) -> ClientServer:
    if not isinstance(entry, Mapping):
        raise BadRequest("It is not an object.")
    if entry.get("disabled") is True or entry.get("enabled") is False:
        raise BadRequest("It is switched off in that client.")
    for key, meaning in _UNSUPPORTED.items():
        if entry.get(key):
            raise BadRequest(f"It {meaning} (`{key}`), which is not taken over.")
    urls = [key for key in _URL_KEYS if entry.get(key)]
    if bool(urls) == bool(entry.get("command")) or len(urls) > 1:
        raise BadRequest("It needs either an address or a command.")
    kind = entry.get("type", entry.get("transport"))
    if not urls:
        if kind not in (None, "stdio", "local"):
            raise BadRequest(f"Its type is {_shown(kind)}, but it has a command.")
        return _read_program(name, entry)
    return _read_remote(name, entry, _text(entry[urls[0]], f"`{urls[0]}`"), kind)


def _read_remote(name: str, entry: Mapping[str, Any], url: str, kind: object) -> ImportedServer:
    path = url.partition("?")[0].rstrip("/")
    if kind == "sse" or (kind is None and path.endswith("/sse")):
        known = find_by_host(CATALOGUE, url)
        hint = f"Connect with `backburner connect {known.name}`." if known is not None else ""
        raise BadRequest(OLD_TRANSPORT, hint=hint)
    if kind is not None and not (isinstance(kind, str) and kind in _HTTP):
        raise BadRequest(f"Its type {_shown(kind)} is not supported.")
    client = entry.get("oauth", entry.get("auth"))
    client = client if isinstance(client, Mapping) else {}
    return ImportedServer(
        name=name,
        url=url,
        headers=_texts(entry.get("headers"), "`headers`"),
        client_id=_optional(client, "clientId", "CLIENT_ID"),
        client_secret=_optional(client, "clientSecret", "CLIENT_SECRET"),
    )


def _read_program(name: str, entry: Mapping[str, Any]) -> ClientServer:
    command = _text(entry["command"], "`command`")
    arguments = entry.get("args") or []
    if not isinstance(arguments, list):
        raise BadRequest("`args` is not a list.")
    words = [_text(word, "`args`") for word in arguments]
    environment = _texts(entry.get("env"), "`env`")
    first = [command]
    if not words and any(char.isspace() for char in command) and not command.startswith("/"):
        # Some files have the whole line there.
        try:
            first = shlex.split(command)
        except ValueError:
            raise BadRequest("Its command is a line that cannot be split into words.") from None
    program = ImportedProgram(name=name, command=(*first, *words), environment=environment)
    return read_bridge(program) or program


def _resolve_server(server: ImportedServer, values: Values) -> ImportedServer:
    headers = {
        name: values.resolve(text, f"The header {name}") for name, text in server.headers.items()
    }
    return replace(
        server,
        url=values.resolve(server.url, "The address"),
        headers={name: text for name, text in headers.items() if text.strip()},
        client_id=values.resolve(server.client_id, "The client"),
        client_secret=values.resolve(server.client_secret, "The client"),
    )


def _resolve_program(program: ImportedProgram, values: Values) -> ImportedProgram:
    command = tuple(resolve_plain(word, values, "The command") for word in program.command)
    check_command(command)
    # Refused here, before its user is asked anything.
    read_launch(command)
    check_environment(program.environment)
    environment = {
        name: values.resolve(text, f"The variable {name}")
        for name, text in program.environment.items()
    }
    check_values(environment)
    sources = {name: describe_source(text) for name, text in program.environment.items()}
    return replace(program, command=command, environment=environment, sources=sources)


def _read_inputs(found: object) -> Mapping[str, Input]:
    inputs = [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
    return {
        one["id"]: Input(
            id=one["id"],
            description=escape_hidden(str(one.get("description", "")))[:200],
            is_secret=one.get("password") is True,
        )
        for one in inputs
        if isinstance(one.get("id"), str)
    }


def _texts(found: object, label: str) -> Mapping[str, str]:
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise BadRequest(f"{label} is not an object.")
    return {name: _text(value, label) for name, value in found.items() if value is not None}


def _text(value: object, label: str) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise BadRequest(f"{label} has something that is not text.")
    if len(value) > MAX_TEXT_CHARS:
        raise BadRequest(f"{label} has a text that is too long.")
    return value


def _optional(found: Mapping[str, Any], *names: str) -> str:
    return next((_text(found[name], f"`{name}`") for name in names if found.get(name)), "")


def _shown(value: object) -> str:
    return escape_hidden(repr(value))[:60]
