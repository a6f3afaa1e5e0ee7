"""Headers with which a connection signs in: what they may be called, and what they may hold."""

from collections.abc import Collection, Mapping

from backburner.core.errors import BadRequest

MAX_HEADERS = 10
MAX_HEADER_NAME_CHARS, MAX_HEADER_CHARS = 100, 8_000
#: Set by us, or part of how a request is sent.
_OUR_HEADERS = frozenset(
    {
        *("accept", "connection", "content-length", "content-type", "cookie", "host", "origin"),
        *("mcp-protocol-version", "mcp-session-id", "te", "transfer-encoding", "upgrade"),
    }
)
_HEADER_NAME_CHARS = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")


def check_headers(headers: Mapping[str, str]) -> None:
    """Refuse headers that cannot be sent. Their values are not quoted: they are secrets."""
    check_header_names(headers)
    for name, value in headers.items():
        is_printable = value.isascii() and value.isprintable()
        if not value.strip() or not is_printable or len(value) > MAX_HEADER_CHARS:
            raise BadRequest(
                f"The value of the header {name} cannot be sent.",
                hint=f"It has to be 1 to {MAX_HEADER_CHARS:,} plain characters in one line.",
            )


def check_header_names(names: Collection[str]) -> None:
    if len(names) > MAX_HEADERS:
        raise BadRequest(f"A connection may have {MAX_HEADERS} headers.")
    if len({name.casefold() for name in names}) != len(names):
        raise BadRequest("A header is given twice.")
    for name in names:
        plain = name.casefold()
        if (
            not plain
            or not _HEADER_NAME_CHARS.issuperset(plain)
            or len(plain) > MAX_HEADER_NAME_CHARS
        ):
            raise BadRequest(f"{name[:80]!r} is not the name of a header.")
        if plain in _OUR_HEADERS:
            raise BadRequest(f"The header {name} cannot be set.", hint="Leave it out.")
