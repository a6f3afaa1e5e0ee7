"""A list of tools that a server sent, compared with what its owner has accepted."""

from dataclasses import replace

import pytest

from backburner.core.connections import listing
from backburner.core.connections.connection import (
    UNKNOWN_NATURE,
    ConnectionTool,
    Ticks,
    ToolDefinition,
    ToolNature,
    definition_digest,
)
from backburner.core.connections.listing import Listing
from backburner.core.connections.naming import MAX_TOOL_NAME_CHARS
from backburner.core.errors import Conflict, NotFound

SEARCH = ToolDefinition(name="search", description="Search the mail.")
SEND = ToolDefinition(name="send", description="Send a mail.")
CHANGED = replace(SEND, description="Send a mail, and a copy to somebody else.")


def compare(
    known: tuple[ConnectionTool, ...], *listed: ToolDefinition, first: bool = False
) -> Listing:
    return listing.compare(known, listed, natures=lambda _: UNKNOWN_NATURE, is_first=first)


def accepted(definition: ToolDefinition, **changes: object) -> ConnectionTool:
    digest = definition_digest(definition)
    tool = ConnectionTool(
        definition=definition, digest=digest, accepted=digest, accepted_definition=definition
    )
    return replace(tool, **changes)  # type: ignore[arg-type]


def test_the_first_list_is_accepted_as_a_whole() -> None:
    found = compare((), SEARCH, SEND, first=True)

    assert found.changed == (accepted(SEARCH), accepted(SEND))
    assert found.unreported == ()


def test_a_later_tool_is_withheld_until_it_is_accepted() -> None:
    found = compare((accepted(SEARCH),), SEARCH, SEND)

    (new,) = found.changed
    assert new.is_withheld
    assert found.unreported == (new,)
    assert listing.accept([new], {"send": new.digest}) == (
        replace(accepted(SEND), reported=new.digest),
    )


def test_a_changed_tool_is_withheld_and_keeps_what_was_accepted() -> None:
    found = compare((accepted(SEND),), CHANGED)

    (changed,) = found.changed
    assert changed.is_withheld
    assert changed.definition == CHANGED
    assert changed.accepted_definition == SEND


def test_a_tool_that_comes_back_as_it_was_accepted_is_accepted() -> None:
    gone = compare((accepted(SEND),)).changed
    back = compare(gone, SEND).changed
    changed = compare(back, CHANGED).changed
    restored = compare(changed, SEND).changed

    assert [tool.gone for tool in gone] == [True]
    assert back == restored == (accepted(SEND),)


def test_a_tool_that_comes_back_changed_is_withheld() -> None:
    gone = compare((accepted(SEND),)).changed
    (back,) = compare(gone, CHANGED).changed

    assert back.is_withheld


def test_a_tool_that_goes_before_it_was_accepted_is_forgotten() -> None:
    new = compare((), SEND).changed

    assert compare(new) == Listing(forgotten=("send",))


def test_a_list_without_a_change_changes_nothing() -> None:
    assert compare((accepted(SEARCH), accepted(SEND)), SEND, SEARCH).is_unchanged
    assert not compare((accepted(SEARCH),)).is_unchanged
    assert not compare(compare((), SEND).changed).is_unchanged


def test_the_owner_is_told_of_a_change_once_and_of_the_next_one_again() -> None:
    first = compare((accepted(SEND), accepted(SEARCH)), CHANGED, SEARCH)
    told = listing.mark_reported(first)
    again = compare((*told, accepted(SEARCH)), CHANGED, SEARCH)
    other = compare((*told, accepted(SEARCH)), replace(CHANGED, description="Another."), SEARCH)

    assert len(first.unreported) == 1
    assert again.unreported == ()
    assert again.is_unchanged
    assert len(other.unreported) == 1


def test_changes_that_need_no_notice_are_kept_beside_those_that_do() -> None:
    found = compare((accepted(SEND), accepted(SEARCH)), CHANGED)

    kept = {tool.name: tool for tool in listing.mark_reported(found)}
    assert kept["search"].gone
    assert kept["send"].reported == kept["send"].digest


def test_our_catalogue_says_what_tools_do_and_what_it_said_before_does_not_count() -> None:
    reads = ToolNature(read_only=True)
    before = accepted(SEARCH, nature=ToolNature(repeatable=True))
    found = listing.compare([before], [SEARCH], natures=lambda _: reads, is_first=False)

    assert [tool.nature for tool in found.changed] == [reads]
    assert found.unreported == ()


def test_what_the_owner_said_of_the_earlier_definition_ends_unless_it_rules_something_out() -> None:
    ticked = accepted(SEND, ticks=Ticks(read_only=True, repeatable=False))
    (changed,) = compare((ticked,), CHANGED).changed
    (now,) = listing.accept([changed], {"send": changed.digest})

    assert now.is_accepted
    assert now.accepted_definition == CHANGED
    assert now.ticks == Ticks(repeatable=False)
    back = accepted(SEND, ticks=Ticks(read_only=False, repeatable=True))
    (changed,) = compare((back,), CHANGED).changed
    assert listing.accept([changed], {"send": changed.digest})[0].ticks == Ticks(read_only=False)


def test_a_definition_that_is_accepted_already_stays_as_it_is() -> None:
    ticked = accepted(SEND, ticks=Ticks(read_only=True))

    assert listing.accept([ticked], {"send": ticked.digest}) == ()


def test_only_what_was_seen_is_accepted() -> None:
    (changed,) = compare((accepted(SEND),), CHANGED).changed

    with pytest.raises(Conflict, match="changed since"):
        listing.accept([changed], {"send": accepted(SEND).digest})
    with pytest.raises(NotFound):
        listing.accept([changed], {"draft": changed.digest})
    with pytest.raises(NotFound):
        listing.accept([replace(changed, gone=True)], {"send": changed.digest})


@pytest.mark.parametrize(
    ("known", "listed", "text"),
    [
        ((), (SEND,), "1 tool is new."),
        ((), (SEND, SEARCH), "2 tools are new."),
        ((accepted(SEND),), (CHANGED,), "1 tool changed."),
        ((accepted(SEND),), (CHANGED, SEARCH), "1 tool changed and 1 tool is new."),
    ],
)
def test_the_notice_counts_and_quotes_nothing_that_the_server_wrote(
    known: tuple[ConnectionTool, ...], listed: tuple[ToolDefinition, ...], text: str
) -> None:
    told = listing.describe_withheld("mail", compare(known, *listed).unreported)

    assert told.startswith(f"Connection mail: {text}")
    assert not any(tool.name in told for tool in listed)


def test_tools_that_cannot_be_kept_cost_only_themselves() -> None:
    nested: dict[str, object] = {}
    for _ in range(40):
        nested = {"properties": nested}
    bad = [
        ToolDefinition(name=""),
        ToolDefinition(name="hid\u200bden"),
        ToolDefinition(name="send\ufe0f"),
        ToolDefinition(name="send "),
        ToolDefinition(name="x" * (MAX_TOOL_NAME_CHARS + 1)),
        ToolDefinition(name="long", description="x" * (listing.MAX_DESCRIPTION_CHARS + 1)),
        ToolDefinition(name="null", description="\0"),
        ToolDefinition(name="large", parameters={"title": "x" * listing.MAX_SCHEMA_BYTES}),
        ToolDefinition(name="deep", parameters=nested),
        SEND,
    ]
    found = listing.select_usable([SEND, *bad, SEARCH])

    assert list(found.tools) == [SEND, SEARCH]
    assert found.left_out.keys() == {
        *("", "hid\u200bden", "x" * MAX_TOOL_NAME_CHARS, "long", "null", "large", "deep"),
        *("send", "send\ufe0f", "send "),
    }
    assert all(found.left_out.values())


def test_a_connection_has_so_many_tools_and_no_more() -> None:
    many = [ToolDefinition(name=f"tool{number}") for number in range(10_000)]
    found = listing.select_usable(many)

    assert list(found.tools) == many[: listing.MAX_TOOLS]
    assert len(found.left_out) == len(many) - listing.MAX_TOOLS


def test_all_tools_of_a_connection_together_are_limited_too() -> None:
    schema = {"title": "x" * (listing.MAX_SCHEMA_BYTES - 100)}
    many = [ToolDefinition(name=f"tool{number}", parameters=schema) for number in range(30)]
    found = listing.select_usable([*many, SEND])

    assert len(found.tools) == listing.MAX_LISTING_BYTES // listing.MAX_SCHEMA_BYTES
    assert "bytes" in found.left_out["tool29"]


def test_all_connections_of_a_user_together_are_limited_too() -> None:
    schema = {"title": "x" * (listing.MAX_SCHEMA_BYTES - 100)}
    many = [ToolDefinition(name=f"tool{number}", parameters=schema) for number in range(5)]
    of_others = listing.MAX_USER_LISTING_BYTES - 2 * listing.MAX_SCHEMA_BYTES
    found = listing.select_usable(many, of_others=of_others)

    assert len(found.tools) == 2
    assert "all your connections" in found.left_out["tool4"]
