"""The names under which a model is offered tools: it takes fewer than there are."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import count

from backburner.ports import Offer

LONGEST = 64
_NOT_TAKEN = re.compile(r"[^a-zA-Z0-9_-]")


def name_tools(offers: Iterable[Offer], *, taken: str) -> Mapping[str, Offer]:
    """Give each tool its own name if a model can take it, else one like it. `taken`: none gets."""
    given, known = dict[str, Offer](), list(offers)
    times = Counter(offer.tool.name for offer in known)
    for offer in known:
        tool = offer.tool
        wanted = tool.name if times[tool.name] == 1 else f"{tool.server}_{tool.name}"
        plain = _NOT_TAKEN.sub("_", wanted)[:LONGEST] or "tool"
        given[_free(plain, {taken, *given})] = offer
    return given


def _free(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    numbered = (f"{name[: LONGEST - 4]}_{number}" for number in count(2))
    return next(other for other in numbered if other not in taken)
