"""The servers of another client's file, before any of them is added."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from backburner.actions.connections.imports import OfferedServer
from backburner.core.connections.imports.choices import AskedValue, ImportKind
from backburner.core.ids import ConnectionId
from backburner.web.rendering import count, fill, load_words
from backburner.web.views.exact_text import ExactText, show_exact


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferRow:
    number: int
    name: str
    project: str
    url: str
    #: The same, with what cannot be seen in it.
    address: ExactText
    is_encrypted: bool
    #: Which secrets would be stored.
    stores: str
    #: What is to be done at its sign-in.
    client: str
    asks: Sequence[AskedValue]
    #: The connection that there is already.
    connection_id: ConnectionId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRow:
    name: str
    project: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOffers:
    """The content of a file, in a sentence and in three lists."""

    summary: str
    servers: Sequence[OfferRow]
    programs: Sequence[LeftOutRow]
    #: Imports the programs; empty: there are none.
    command: str
    left_out: Sequence[LeftOutRow]

    @property
    def can_add(self) -> bool:
        return any(one.connection_id is None for one in self.servers)


def show_offers(offered: Iterable[OfferedServer], command: str) -> FileOffers:
    words = load_words().connections.importing
    found = list(offered)
    servers = [_show(one) for one in found if one.choice.kind is ImportKind.SERVER]
    programs = [_name(one) for one in found if one.choice.kind is ImportKind.PROGRAM]
    left_out = [_name(one) for one in found if one.choice.kind is ImportKind.LEFT_OUT]
    names = " ".join(f"--only {shlex.quote(one.name)}" for one in programs)
    counts = [count(words.servers, len(servers))]
    counts += [count(words.programs, len(programs))] if programs else []
    counts += [count(words.left_out, len(left_out))] if left_out else []
    return FileOffers(
        summary=f"{', '.join(counts)}.",
        servers=servers,
        programs=programs,
        command=f"{command} connections import {names}" if programs else "",
        left_out=left_out,
    )


def _show(offered: OfferedServer) -> OfferRow:
    words, choice = load_words().connections.importing, offered.choice
    headers = ", ".join(choice.headers)
    return OfferRow(
        number=choice.number,
        name=choice.name,
        project=choice.project,
        url=choice.url,
        address=show_exact(choice.url),
        is_encrypted=choice.url.startswith("https://"),
        stores=fill(words.stores, headers=headers) if headers else words.stores_nothing,
        client=fill(words.client, client=choice.client_id) if choice.client_id else "",
        asks=choice.asks,
        connection_id=None if offered.known is None else offered.known.id,
    )


def _name(offered: OfferedServer) -> LeftOutRow:
    choice = offered.choice
    return LeftOutRow(name=choice.name, project=choice.project, reason=choice.reason)
