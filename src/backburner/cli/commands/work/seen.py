"""Marks what was printed as seen."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from backburner.cli.client import Server
from backburner.core.errors import BackburnerError


def mark_seen(server: Server, conversation_id: str, messages: Sequence[Any]) -> None:
    """Mark a conversation as seen up to the last of these messages, oldest first.

    A credential that may only read cannot; what was asked for is printed all the same.
    """
    if messages:
        with suppress(BackburnerError):
            path = f"/api/conversations/{conversation_id}/seen"
            server.post(path, {"up_to": messages[-1]["id"]})
