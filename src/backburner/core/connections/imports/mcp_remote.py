"""Programs that only pass a remote server on (`mcp-remote`): the server itself is taken over."""

from backburner.core.connections.imports.client_server import ImportedProgram, ImportedServer
from backburner.core.connections.imports.packages import read_launch
from backburner.core.connections.imports.references import substitute
from backburner.core.errors import BadRequest

_PACKAGES = frozenset({"mcp-remote", "@geelen/mcp-remote"})
_FLAGS = frozenset({"--debug", "--silent", "--enable-proxy"})
_WITH_VALUE = frozenset({"--auth-timeout", "--host", "--resource"})
OLD_TRANSPORT = "It speaks only the older transport with events (SSE), which is not supported."
_TRANSPORTS = frozenset({"http-first", "http-only", "sse-first"})


def read_bridge(program: ImportedProgram) -> ImportedServer | None:
    """Return the server that a program passes on; None: it is another program."""
    try:
        launch = read_launch(program.command)
    except BadRequest:
        return None
    if launch is None or launch.packages[0].name not in _PACKAGES or not launch.arguments:
        return None
    url, *arguments = launch.arguments
    words = iter(arguments)
    headers = dict[str, str]()
    for word in words:
        if word in _FLAGS or word.isdecimal():
            continue
        value = next(words, None)
        if word not in (*_WITH_VALUE, "--header", "--transport") or value is None:
            # Anything else may be a secret.
            option = word.partition("=")[0][:60]
            what = f"The option {option!r}" if option.startswith("--") else "An argument"
            raise BadRequest(f"{what} of mcp-remote is not taken over.")
        if word == "--transport" and value not in _TRANSPORTS:
            raise BadRequest(
                "it uses the older transport with events (SSE), which is not supported"
            )
        if word == "--header":
            name, colon, text = value.partition(":")
            if not colon:
                raise BadRequest("A header of mcp-remote has no value.")
            headers[name.strip()] = substitute(text.strip(), program.environment.get)
    return ImportedServer(name=program.name, url=url, headers=headers)
