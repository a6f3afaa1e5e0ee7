"""Tools as models see them: with names and schemas that their APIs accept.

Both depend on the tool alone: stored sessions repeat them, whatever else is offered later.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backburner.core.connections.shown_schema import ShownSchema, show
from backburner.core.tool_policy import OWN_SERVER
from backburner.ports import Offer

MAX_NAME_CHARS = 64
_DIGEST_CHARS = 6
_INVALID = re.compile(r"[^A-Za-z0-9_-]")
#: A name like this gets a digest too, so that it cannot be that of another tool.
_WITH_DIGEST = re.compile(f".*_[0-9a-f]{{{_DIGEST_CHARS}}}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ShownTool:
    offer: Offer
    schema: ShownSchema

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self.schema.parameters


def show_tool(offer: Offer) -> ShownTool:
    # Ours are written as they have to be, and are in every request.
    is_own = offer.tool.server == OWN_SERVER
    return ShownTool(offer, ShownSchema(offer.parameters) if is_own else show(offer.parameters))


def shown_name(name: str, *, prefix: str = "") -> str:
    """Return the name of a tool if APIs accept it after a prefix, else one with a digest of it."""
    plain, room = _INVALID.sub("_", name), MAX_NAME_CHARS - len(prefix)
    if plain == name and 0 < len(name) <= room and not _WITH_DIGEST.fullmatch(name):
        return prefix + name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{prefix}{plain[: room - _DIGEST_CHARS - 1]}_{digest}"
