"""Well-known services, as cards to connect to them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from backburner.core.connections.catalogue_entry import CatalogueEntry
from backburner.core.connections.connection import AuthKind
from backburner.core.ids import ConnectionId
from backburner.web.rendering import count, load_words
from backburner.web.views.connect.connections import choose_icon


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    key: str
    title: str
    host: str
    icon: str
    purpose: str
    reads: str
    #: What has to be done first.
    before: str
    docs: str
    #: What is sent to add it.
    body: Mapping[str, Any]
    #: The header that its key goes into; empty: it takes none.
    header: str
    header_prefix: str
    #: The connection that there is already.
    connection_id: ConnectionId | None


def show_services(
    entries: Iterable[CatalogueEntry], find: Callable[[str], ConnectionId | None]
) -> Sequence[Service]:
    """`find` returns the connection to an address, if there is one."""
    words = load_words().connections.adding
    return [
        Service(
            key=entry.name,
            title=entry.title,
            host=urlsplit(entry.url).hostname or "",
            icon=choose_icon(entry.name),
            purpose=entry.purpose,
            reads=count(words.reads, len(entry.reads)),
            before=" ".join(
                [words.own_client, entry.before] if entry.own_client else [entry.before]
            ),
            docs=entry.docs,
            body={"url": entry.url, "title": entry.title},
            header=entry.header if entry.auth is AuthKind.HEADER else "",
            header_prefix=entry.header_prefix,
            connection_id=find(entry.url),
        )
        for entry in entries
    ]
