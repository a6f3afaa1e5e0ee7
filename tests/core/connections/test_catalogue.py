"""The catalogue of well-known servers: the form of every entry, and what it grants."""

import re
from ipaddress import ip_address
from itertools import pairwise
from urllib.parse import urlsplit

import pytest

from backburner.core.connections.catalogue import CATALOGUE
from backburner.core.connections.catalogue_entry import CatalogueEntry, find_by_url, find_entry
from backburner.core.connections.connection import UNKNOWN_NATURE, AuthKind
from backburner.core.validation import hidden_characters

every_entry = pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)
#: Words of tools that change something, whatever else is in their names.
CHANGES = frozenset(
    (
        "add apply assign cancel create delete deploy edit execute mark merge move pay post publish"
        " push refund remove reply restore run schedule send set submit transition update upload"
        " write"
    ).split()
)


@every_entry
def test_an_entry_has_a_name_that_a_connection_can_have(entry: CatalogueEntry) -> None:
    words = entry.name.split("-")
    assert all(word.isascii() and word.isalnum() and word.islower() for word in words)
    assert len(entry.name) <= 32


def test_names_and_addresses_are_unique_and_sorted() -> None:
    assert all(first.name < second.name for first, second in pairwise(CATALOGUE))
    assert len({entry.url.rstrip("/") for entry in CATALOGUE}) == len(CATALOGUE)


@every_entry
def test_addresses_are_public_and_carry_nothing_else(entry: CatalogueEntry) -> None:
    for address in (entry.url, entry.docs):
        url = urlsplit(address)
        assert url.scheme == "https"
        assert url.netloc == url.hostname, "no port, user or password"
        assert not url.query
        assert not url.fragment
        assert address.isascii()
        assert url.hostname.count(".") >= 1
        assert not url.hostname.endswith((".local", ".internal", ".localhost", ".test", ".example"))
        with pytest.raises(ValueError, match="does not appear to be"):
            ip_address(url.hostname)


@every_entry
def test_an_address_of_the_older_transport_is_not_offered(entry: CatalogueEntry) -> None:
    assert not entry.url.rstrip("/").endswith("/sse")


@every_entry
def test_texts_are_one_plain_line(entry: CatalogueEntry) -> None:
    for text in (entry.title, entry.purpose, entry.before):
        assert text == text.strip()
        assert "\n" not in text
        assert not hidden_characters(text)
    assert entry.title
    assert entry.purpose.endswith(".")
    assert len(entry.purpose) <= 80
    assert not entry.before or entry.before.endswith(".")


@every_entry
def test_a_header_is_named_where_a_key_is_used_and_nowhere_else(entry: CatalogueEntry) -> None:
    assert bool(entry.header) == (entry.auth is AuthKind.HEADER)
    assert not entry.header_prefix or entry.header
    assert not entry.own_client or entry.auth is AuthKind.OAUTH
    assert entry.before or not (entry.own_client or entry.header), "how to get it"


@every_entry
def test_no_tool_that_changes_something_is_named_as_one_that_reads(entry: CatalogueEntry) -> None:
    for tool in entry.reads:
        words = re.findall("[A-Z]?[a-z0-9]+", tool)
        assert not CHANGES.intersection(map(str.lower, words)), tool
    assert entry.discloses <= entry.reads


@every_entry
def test_tools_of_servers_without_an_account_disclose_their_arguments(
    entry: CatalogueEntry,
) -> None:
    if entry.auth is AuthKind.NONE:
        assert entry.discloses == entry.reads


def test_only_a_named_tool_reads() -> None:
    exa = CatalogueEntry(
        name="exa",
        title="Exa",
        url="https://mcp.exa.ai/mcp",
        purpose="Search.",
        docs="https://docs.exa.ai",
        reads=frozenset({"search", "usage"}),
        discloses=frozenset({"search"}),
    )
    assert exa.nature("search").read_only
    assert exa.nature("search").repeatable
    assert exa.nature("search").discloses
    assert exa.nature("usage").read_only
    assert not exa.nature("usage").discloses
    assert exa.nature("delete") == UNKNOWN_NATURE
    assert exa.nature("Search") == UNKNOWN_NATURE


def test_an_entry_is_found_by_its_name() -> None:
    found = find_entry(CATALOGUE, "linear")
    assert found is not None
    assert found.title == "Linear"
    assert find_entry(CATALOGUE, "nobody") is None


def test_an_entry_is_found_by_its_exact_address_only() -> None:
    found = find_by_url(CATALOGUE, "https://mcp.linear.app/mcp/")
    assert found is not None
    assert found.name == "linear"
    for other in (
        "https://mcp.linear.app/mcp?x=1",
        "https://mcp.linear.app/sse",
        "https://mcp.linear.app.example/mcp",
        "http://mcp.linear.app/mcp",
    ):
        assert find_by_url(CATALOGUE, other) is None
