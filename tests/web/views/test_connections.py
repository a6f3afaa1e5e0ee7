"""How a connection works, in one word; its day in a sentence; its tools with three choices."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from support.doubles.tool_servers import tool
from support.stage.make import NOON, USER

from backburner.actions.connections.overview import ConnectionOverview
from backburner.core.connections.call import SLOT, CallCounts, CallsOfDay, fill_day, start_of_day
from backburner.core.connections.connection import (
    AuthKind,
    Connection,
    ConnectionState,
    ConnectionTool,
    Ticks,
    ToolDefinition,
)
from backburner.core.ids import ConnectionId, ConversationId
from backburner.web.display import Display
from backburner.web.views.connect.connection_detail import describe_day, show_detail
from backburner.web.views.connect.connection_tools import (
    FILTER_FROM,
    MAX_OPEN_CHARS,
    show_details,
    show_tools,
)
from backburner.web.views.connect.connections import show_row, sort_rows

DISPLAY = Display(NOON, "UTC")
MAIL = Connection(
    id=ConnectionId("x_mail"),
    user_id=USER,
    name="mail",
    title="Mail",
    url="https://mail.example:8443/mcp",
    auth=AuthKind.OAUTH,
    last_used_at=NOON - timedelta(minutes=2),
    created_at=NOON,
)
SINCE = start_of_day(NOON)
NO_CALLS = fill_day((), SINCE)
NEW = replace(tool("new"), accepted="", accepted_definition=None)
SLOW = fill_day([CallCounts(at=SINCE, calls=3, slow=2)], SINCE)


def overview(
    connection: Connection = MAIL,
    *tools: ConnectionTool,
    day: CallsOfDay = NO_CALLS,
    waiting: tuple[str, ...] = (),
) -> ConnectionOverview:
    return ConnectionOverview(
        connection=connection,
        tools=tools,
        day=day,
        waiting=[ConversationId(one) for one in waiting],
    )


@pytest.mark.parametrize(
    ("found", "word", "tone"),
    [
        (overview(), "Works", "ok"),
        (overview(day=SLOW), "Slow", "warn"),
        (overview(MAIL, NEW, day=SLOW), "Needs a look", "ember"),
        (overview(MAIL, replace(NEW, ticks=Ticks(off=True))), "Works", "ok"),
        (overview(replace(MAIL, last_error="It hangs."), NEW), "Fails", "bad"),
        (overview(replace(MAIL, state=ConnectionState.SIGNED_OUT)), "Signed out", "ember"),
        (overview(replace(MAIL, state=ConnectionState.SIGNING_IN)), "Signed out", "ember"),
        (overview(replace(MAIL, disabled=True, last_error="It hangs.")), "Off", "off"),
    ],
)
def test_how_a_connection_works_is_one_word(
    found: ConnectionOverview, word: str, tone: str
) -> None:
    health = show_row(found, DISPLAY).health

    assert (health.word, health.tone) == (word, tone)


def test_a_row_says_what_waits_or_else_what_is_allowed_and_when_it_was_used() -> None:
    reads, off = tool("a", ticks=Ticks(read_only=True)), tool("b", ticks=Ticks(off=True))
    gone = replace(tool("c"), gone=True)

    row = show_row(overview(MAIL, reads, off, gone, NEW), DISPLAY)
    waits = show_row(overview(MAIL, waiting=("c_1", "c_2")), DISPLAY)
    never = show_row(overview(replace(MAIL, last_used_at=None)), DISPLAY)

    assert row.line == "1 of 3 tools allowed · used 2\N{NO-BREAK SPACE}min ago"
    assert (waits.line, waits.is_urgent) == ("2 conversations wait.", True)
    assert never.line == "no tools · never used"


def test_what_needs_its_user_comes_first() -> None:
    works, fails = overview(replace(MAIL, title="A")), replace(MAIL, title="Z", last_error="No.")
    signed_out = overview(replace(MAIL, title="Y", state=ConnectionState.SIGNED_OUT))

    rows = sort_rows([show_row(one, DISPLAY) for one in (works, overview(fails), signed_out)])

    assert [row.title for row in rows] == ["Y", "Z", "A"]


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({}, "No calls in the last 24 hours."),
        ({"calls": 1}, "One call, all answered."),
        ({"calls": 12, "slow": 1}, "12 calls. One slow answer, the last today 11:30."),
        (
            {"calls": 4, "failed": 2, "unknown": 1},
            (
                "4 calls. 2 failed, the last today 11:30. One may not have been made, the last"
                " today 11:30."
            ),
        ),
    ],
)
def test_a_day_of_calls_is_a_sentence(counts: dict[str, Any], sentence: str) -> None:
    day = fill_day([CallCounts(at=NOON - SLOT, **counts)], SINCE)

    assert describe_day(day, DISPLAY) == sentence


def test_a_day_has_48_bars_whose_shape_is_not_their_colour_alone() -> None:
    counted = [
        CallCounts(at=SINCE, calls=2, took=timedelta(seconds=1)),
        CallCounts(at=SINCE + SLOT, calls=1, slow=1),
        CallCounts(at=SINCE + 2 * SLOT, calls=1, failed=1),
    ]
    detail = show_detail(overview(day=fill_day(counted, SINCE)), {}, DISPLAY)

    bars = detail.chart.bars
    assert (len(bars), detail.chart.texts.sentence) == (48, detail.day)
    assert [bar.tone for bar in bars[:4]] == ["ok", "slow", "bad", "none"]
    assert [bar.value for bar in bars[:4]] == [
        "2 calls",
        "one call, one slow answer",
        "one call, one failed",
        "no calls",
    ]
    assert detail.answers == "answers in 250\N{NO-BREAK SPACE}ms"


def test_a_tool_stands_on_what_its_owner_or_else_the_catalogue_says() -> None:
    shown = show_tools(
        [
            tool("a"),
            tool("b", ticks=Ticks(read_only=True)),
            tool("c", read_only=True, discloses=True),
            tool("d", read_only=True, ticks=Ticks(read_only=False)),
            tool("e", ticks=Ticks(read_only=True, off=True)),
            tool("f", ticks=Ticks(repeatable=True)),
        ]
    ).usual

    assert [(one.name, one.chosen) for one in shown] == [
        *(("a", "ask"), ("b", "reads"), ("c", "reads"), ("d", "ask"), ("e", "off"), ("f", "ask"))
    ]
    assert [len(one.notes) for one in shown] == [0, 1, 2, 1, 1, 1]
    assert [one.name for one in shown if one.can_forget] == ["d"]


def test_all_of_a_change_is_shown_before_it_can_be_accepted() -> None:
    before = tool("send")
    definition = ToolDefinition(
        name="send", description="Does send.\nAnd\u202e more.", parameters={"type": "object"}
    )
    changed = replace(before, definition=definition, digest="other")

    (shown,) = show_tools([changed]).changes

    assert shown.difference is not None
    added = [str(line.text.html) for line in shown.difference if line.tone == "added"]
    assert "U+202E" in added[0]
    assert any(line.tone == "removed" and "words" in line.text.html for line in shown.difference)
    assert not shown.is_new


def test_many_changes_are_loaded_one_by_one_and_cannot_be_accepted_unseen() -> None:
    few = [replace(NEW, definition=ToolDefinition(name=f"n{number}")) for number in range(2)]
    many = [replace(NEW, definition=ToolDefinition(name=f"n{number}")) for number in range(11)]

    assert show_tools(few).all_seen == {"n0": NEW.digest, "n1": NEW.digest}
    assert show_tools(few[:1]).all_seen == {}
    assert show_tools(many).all_seen == {}
    assert all(one.difference is None for one in show_tools(many).changes)


def test_a_change_with_a_long_schema_is_loaded_when_it_is_asked_for() -> None:
    names = [f"a{number}" for number in range(MAX_OPEN_CHARS // 6)]
    definition = ToolDefinition(name="n", parameters={"type": "object", "required": names})
    (change,) = show_tools([replace(NEW, definition=definition)]).changes

    assert change.difference is None


def test_many_tools_have_a_field_to_find_one() -> None:
    assert not show_tools([tool(f"t{n}") for n in range(FILTER_FROM - 1)]).has_filter
    assert show_tools([tool(f"t{n}") for n in range(FILTER_FROM)]).has_filter


def test_what_a_server_says_is_cut_in_a_list_and_whole_when_asked_for() -> None:
    text = "<b>Reads</b>\n" + "long " * 2_000
    long = replace(tool("a"), definition=ToolDefinition(name="a", description=text))

    (shown,) = show_tools([long]).usual

    assert len(shown.line) < 310
    assert show_details(long).description.html.count("long") == 2_000
    assert "<b>" not in show_details(long).description.html


def test_scopes_have_their_real_names_and_say_what_was_not_given() -> None:
    wants = replace(MAIL, scopes=("read",), wanted_scopes=("send", '"'), refused_scopes=("all",))

    shown = show_detail(overview(wants), {}, DISPLAY).scopes

    assert [(one.name, one.state) for one in shown] == [
        ("read", "given"),
        ("send", "wanted"),
        ("all", "refused"),
    ]
