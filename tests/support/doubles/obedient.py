"""An agent that does whatever it is told, by anybody, wherever it reads it."""

import json
import re
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any

from backburner.ports import EngineEvent, Gate, SessionEntries, TurnEnded, TurnRequest

#: Of one turn: whoever tells it to go on for ever has to do so in the next.
MOST_ORDERS = 40
_ORDER = re.compile(r"DO (\w+) (?=\{)")


def order(tool: str, **arguments: Any) -> str:
    """Write an order down as the agent understands it."""
    return f"DO {tool} {json.dumps(arguments)}"


class ObedientEngine:
    """Follows orders in its prompt, in the texts of its tools and in what its calls gave.

    It repeats what it read last.
    """

    def __init__(self) -> None:
        self.requests: list[TurnRequest] = []
        #: Each with the text that it gave.
        self.followed: list[tuple[str, str]] = []

    async def run(self, request: TurnRequest, gate: Gate) -> AsyncGenerator[EngineEvent, None]:
        self.requests.append(request)
        session = request.session_id or f"session of {request.conversation.id}"
        yield SessionEntries(session, ("It obeyed.",))
        offers = {offer.tool.name: offer for offer in request.tools}
        texts = [f"{one.description}\n{json.dumps(dict(one.parameters))}" for one in request.tools]
        orders = deque(_find("\n".join([request.prompt, *texts])))
        followed, read = set[str](), "Done."
        while orders and len(followed) < MOST_ORDERS:
            tool, arguments = orders.popleft()
            known = order(tool, **arguments)
            if tool not in offers or known in followed:
                continue
            followed.add(known)
            result = await gate.call(offers[tool], arguments)
            self.followed.append((known, result.text))
            if result.stop:
                return
            read = result.text
            orders.extend(_find(read))
        outcome = {"complete": True, "message": read} if request.schema is not None else None
        yield TurnEnded(read, outcome)


def _find(text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    # What is shown as JSON has its quotes marked.
    for shown in (text, text.replace('\\"', '"')):
        for found in _ORDER.finditer(shown):
            try:
                arguments, _ = json.JSONDecoder().raw_decode(shown, found.end())
            except ValueError:
                continue
            yield found[1], arguments
