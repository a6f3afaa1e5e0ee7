"""Names and addresses of connections: what they may be, and a name made from a host."""

import re
from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import SplitResult, parse_qsl, urlsplit

from backburner.core.errors import BadRequest
from backburner.core.validation import check_text, escape_hidden, is_hidden, normalize_title

MAX_NAME_CHARS = 32
MAX_TITLE_CHARS = 100
MAX_URL_CHARS = 2_000
MAX_TOOL_NAME_CHARS = 128
#: The name of our own tools, and what a question or a restriction could be mistaken for.
RESERVED_NAMES = frozenset({"all", "backburner", "none"})
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
#: Parts of a host that say nothing of who runs it.
_COMMON_LABELS = frozenset({"ai", "api", "app", "co", "com", "gov", "mcp", "net", "org", "www"})
#: Parameters of an address, and headers, that are secrets by their names.
_SECRET_NAME = re.compile(r"(?i)(key|token|secret|password|passwd|auth|signature|^sig$|^pat$)")


def check_name(name: str) -> str:
    """Refuse a name that could not be part of the name of a tool."""
    if len(name) > MAX_NAME_CHARS or not _NAME.fullmatch(name):
        raise BadRequest(
            f"{name[:80]!r} cannot be the name of a connection.",
            hint=f"Use up to {MAX_NAME_CHARS} lower case letters and digits, parted by hyphens,"
            " with a letter first.",
        )
    if name in RESERVED_NAMES:
        raise BadRequest(f"The name {name!r} is reserved.", hint="Choose another.")
    return name


def make_name(text: str, taken: Collection[str] = ()) -> str:
    """Make a name from a title or a host, other than those that are taken."""
    words = re.findall(r"[a-z0-9]+", text.casefold())
    plain = "-".join(words).lstrip("0123456789-")[:MAX_NAME_CHARS].rstrip("-")
    base = plain or "server"
    number, name = 1, base
    while name in taken or name in RESERVED_NAMES:
        number += 1
        ending = f"-{number}"
        name = base[: MAX_NAME_CHARS - len(ending)].rstrip("-") + ending
    return name


def name_of_host(url: str) -> str:
    """Return the part of an address that says who runs the server, such as `linear`."""
    host = urlsplit(url).hostname or ""
    try:
        ip_address(host)
    except ValueError:
        labels = host.split(".")
    else:
        return "server"
    if len(labels) == 1:
        return host
    telling = [label for label in labels[:-1] if label not in _COMMON_LABELS]
    return telling[-1] if telling else labels[-2]


def check_title(text: str) -> str:
    title = normalize_title(check_text("The title", text, limit=MAX_TITLE_CHARS))
    if not title or escape_hidden(title) != title:
        raise BadRequest("A connection needs a title that can be read.", hint="Write another.")
    return title


def check_tool_name(name: object) -> str:
    """Refuse a name that could be taken for that of another tool."""
    if not isinstance(name, str) or not name.strip():
        raise BadRequest("It has no name.")
    if len(name) > MAX_TOOL_NAME_CHARS:
        raise BadRequest(f"Its name is longer than {MAX_TOOL_NAME_CHARS} characters.")
    if any(map(is_hidden, name)):
        raise BadRequest("Its name contains characters that cannot be seen.")
    if normalize_title(name) != name:
        raise BadRequest("Its name contains spaces or letters that look like others.")
    return name


def check_url(url: str) -> str:
    """Refuse what is no address of a server, or has a secret in it.

    Whether we connect to that address is decided when we do.
    """
    check_text("The address", url, limit=MAX_URL_CHARS)
    parts = _split(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadRequest(
            f"{url[:80]!r} is not the address of a server.", hint="Begin it with https://."
        )
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    has_secret = any(map(is_secret_name, names))
    if parts.username is not None or parts.password is not None or has_secret:
        raise BadRequest(
            "There is a secret in this address, and addresses are shown and logged.",
            hint="Leave it out, and send it in a header.",
        )
    if parts.fragment:
        raise BadRequest(
            "The part of an address from # on is never sent to a server.", hint="Leave it out."
        )
    return parts.geturl()


def is_same_url(url: str, other: str) -> bool:
    return url.rstrip("/") == other.rstrip("/")


def _split(url: str) -> SplitResult | None:
    if any(char.isspace() or not char.isprintable() for char in url):
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def is_secret_name(name: str) -> bool:
    """Return whether a parameter or header of this name has a secret as its value."""
    return bool(_SECRET_NAME.search(name))
