"""Tools as models see them: with names that their APIs accept.

They depend on the tool alone: stored sessions repeat them, whatever else is offered later.
"""

import hashlib
import re

MAX_NAME_CHARS = 64
_DIGEST_CHARS = 6
_INVALID = re.compile(r"[^A-Za-z0-9_-]")
#: A name like this gets a digest too, so that it cannot be that of another tool.
_WITH_DIGEST = re.compile(f".*_[0-9a-f]{{{_DIGEST_CHARS}}}", re.DOTALL)


def shown_name(name: str, *, prefix: str = "") -> str:
    """Return the name of a tool if APIs accept it after a prefix, else one with a digest of it."""
    plain, room = _INVALID.sub("_", name), MAX_NAME_CHARS - len(prefix)
    if plain == name and 0 < len(name) <= room and not _WITH_DIGEST.fullmatch(name):
        return prefix + name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{prefix}{plain[: room - _DIGEST_CHARS - 1]}_{digest}"
