"""A conversation that is created for what is sent to it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from backburner.cli.client import Server
from backburner.core.errors import BadRequest, Conflict, NotAllowed, NotFound


@contextmanager
def new_conversation(server: Server, body: dict[str, Any]) -> Iterator[str]:
    """Create a conversation, and delete it again if what is sent to it is refused."""
    conversation_id = str(server.post("/api/conversations", body)["id"])
    try:
        yield conversation_id
    except (BadRequest, Conflict, NotAllowed, NotFound):
        server.delete(f"/api/conversations/{conversation_id}?now=true")
        raise
