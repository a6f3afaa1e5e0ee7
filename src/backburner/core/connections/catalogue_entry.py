"""Entries of the catalogue of well-known MCP servers, and how they are found."""

from collections.abc import Iterable
from dataclasses import dataclass

from backburner.core.connections.connection import UNKNOWN_NATURE, AuthKind, ToolNature


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """A public MCP server that its vendor documents."""

    #: Of connections that are made from it, unless their owner chooses another.
    name: str
    title: str
    url: str
    #: What it is for, in one line.
    purpose: str
    #: The page that documents it.
    docs: str
    auth: AuthKind = AuthKind.OAUTH
    #: The header of a key, and what stands before the key in it.
    header: str = ""
    header_prefix: str = ""
    #: It registers no clients by itself: its user has to have an OAuth client of their own.
    own_client: bool = False
    #: What its user has to do or to know before the first sign-in.
    before: str = ""
    #: The tools that change nothing, by its documentation; others are not trusted to.
    reads: frozenset[str] = frozenset()
    #: Those of `reads` whose arguments become known to others than the user's own account.
    discloses: frozenset[str] = frozenset()

    def nature(self, tool: str) -> ToolNature:
        if tool not in self.reads:
            return UNKNOWN_NATURE
        return ToolNature(read_only=True, repeatable=True, discloses=tool in self.discloses)


def find_entry(entries: Iterable[CatalogueEntry], name: str) -> CatalogueEntry | None:
    return next((entry for entry in entries if entry.name == name), None)


def find_by_url(entries: Iterable[CatalogueEntry], url: str) -> CatalogueEntry | None:
    """Find the entry of exactly this server: one with another path or query may do more."""
    return next((entry for entry in entries if entry.url.rstrip("/") == url.rstrip("/")), None)


def find_by_host(entries: Iterable[CatalogueEntry], url: str) -> CatalogueEntry | None:
    """Find an entry of the same host, to suggest it."""
    host = _host(url)
    return next((entry for entry in entries if host and _host(entry.url) == host), None)


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].casefold()
