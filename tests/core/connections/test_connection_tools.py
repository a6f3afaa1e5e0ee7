"""What the owner's decisions and our catalogue make of a tool of a connection."""

from dataclasses import replace

import pytest

from backburner.core.connections.connection import (
    ConnectionTool,
    Ticks,
    ToolDefinition,
    ToolNature,
    definition_digest,
)

SEARCH = ToolDefinition(name="search", description="Search.", parameters={"type": "object"})
DIGEST = definition_digest(SEARCH)


def tool(**changes: object) -> ConnectionTool:
    accepted = ConnectionTool(definition=SEARCH, digest=DIGEST, accepted=DIGEST)
    return replace(accepted, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changed",
    [
        replace(SEARCH, name="find"),
        replace(SEARCH, description="Search. "),
        replace(SEARCH, parameters={"type": "object", "properties": {}}),
    ],
)
def test_any_change_that_an_agent_would_see_gives_another_digest(changed: ToolDefinition) -> None:
    assert definition_digest(changed) != DIGEST


def test_neither_the_order_of_a_schema_nor_a_claim_of_the_server_changes_the_digest() -> None:
    one = replace(SEARCH, parameters={"type": "object", "title": "Find"})
    other = replace(SEARCH, parameters={"title": "Find", "type": "object"}, says_read_only=True)

    assert definition_digest(one) == definition_digest(other)


def test_a_tool_is_offered_with_the_definition_that_its_owner_accepted_only() -> None:
    assert tool().is_offered
    assert not tool().is_withheld
    for withheld in (tool(accepted=""), tool(accepted="another")):
        assert withheld.is_withheld
        assert not withheld.is_offered


def test_a_tool_that_is_gone_is_neither_offered_nor_withheld() -> None:
    gone = (tool(gone=True), tool(gone=True, accepted=""))

    assert not any(one.is_offered or one.is_withheld for one in gone)


def test_what_a_server_says_of_its_own_tools_has_no_effect() -> None:
    claimed = tool(definition=replace(SEARCH, says_read_only=True))

    assert not claimed.read_only
    assert not claimed.repeatable


READS = ToolNature(read_only=True, discloses=True)
#: As our catalogue has them.
READS_AGAIN = ToolNature(read_only=True, repeatable=True)


@pytest.mark.parametrize(
    ("nature", "ticks", "expected"),
    [
        (ToolNature(), Ticks(), (False, False, False)),
        (ToolNature(repeatable=True), Ticks(), (False, True, False)),
        (READS, Ticks(), (True, True, True)),
        # The owner counts more than the catalogue.
        (READS, Ticks(read_only=True), (True, True, False)),
        (READS, Ticks(read_only=False), (False, False, True)),
        (READS, Ticks(repeatable=False), (True, False, True)),
        # What changes something may not be repeated because it was taken for a reading tool.
        (READS_AGAIN, Ticks(read_only=False), (False, False, False)),
        (READS_AGAIN, Ticks(read_only=False, repeatable=True), (False, True, False)),
        (READS_AGAIN, Ticks(), (True, True, False)),
        (ToolNature(), Ticks(read_only=True), (True, True, False)),
        (ToolNature(), Ticks(repeatable=True), (False, True, False)),
    ],
)
def test_a_tool_is_what_its_owner_says_or_else_our_catalogue(
    nature: ToolNature, ticks: Ticks, expected: tuple[bool, bool, bool]
) -> None:
    found = tool(nature=nature, ticks=ticks)

    assert (found.read_only, found.repeatable, found.discloses) == expected
