"""The connections of a conversation: those that it may use, and those that it could."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from backburner.core.connections import access
from backburner.core.connections.connection import Connection, ConnectionState
from backburner.core.conversation import Conversation
from backburner.web.rendering import load_words
from backburner.web.views.connect.connections import describe_server


@dataclass(frozen=True, slots=True)
class Choice:
    name: str
    title: str
    server: str
    note: str
    is_chosen: bool


def list_choices(conversation: Conversation, known: Iterable[Connection]) -> Sequence[Choice]:
    words = load_words().connections.choice
    found = list(known)
    usable = {one.id for one in access.usable(conversation, found)}
    named = conversation.connections or ()
    return [
        Choice(
            name=one.name,
            title=one.title,
            server=describe_server(one),
            note=words.off
            if one.disabled
            else words.signed_out
            if one.state is not ConnectionState.READY
            else "",
            is_chosen=one.id in usable or one.name in named,
        )
        for one in found
    ]
