"""Connections with many tools: these are found by words, and pass the gate as themselves."""

from dataclasses import replace

import pytest
from support.doubles.engine import Call, End
from support.doubles.tool_servers import FakeServers, tool
from support.stage.make import USER
from support.stage.stage import Stage

from backburner.core.connections.connection import Ticks
from backburner.core.question import YES, Purpose
from backburner.core.tool_policy import FIND_TOOL, USE_TOOL
from backburner.tools.connections import finding

READ = Ticks(read_only=True)
MANY = [
    tool("create_issue"),
    tool("list_issues", ticks=READ),
    *(tool(f"other_{number}", ticks=READ) for number in range(498)),
]


@pytest.fixture(autouse=True)
def many(connected: Stage, servers: FakeServers) -> None:
    servers.add(connected, "hub", tools=MANY)
    servers.add(connected, "mail")


def listed(stage: Stage) -> set[str]:
    return {offer.tool.name for offer in stage.engine.requests[-1].tools}


async def test_the_tools_of_the_largest_connection_are_found_by_words(connected: Stage) -> None:
    connected.engine.then(Call(FIND_TOOL, {"words": "issues list"}))
    await connected.task(connections=("hub", "mail"), tools=("memory_search",))

    await connected.work()

    assert {"search", "send", FIND_TOOL, USE_TOOL} <= listed(connected)
    assert "create_issue" not in listed(connected)
    (found,) = connected.engine.results
    assert found.text.startswith("hub/list_issues: Does list_issues.\nArguments: {")
    finder = next(o for o in connected.engine.requests[-1].tools if o.tool.name == FIND_TOOL)
    assert "It searches: hub (500 tools)." in finder.description


class CountedText(str):
    """Counts how often all of it is gone through to compare it."""

    __slots__ = ("prepared",)

    def casefold(self) -> str:
        self.prepared = getattr(self, "prepared", 0) + 1
        return super().casefold()


async def test_a_long_description_is_prepared_once_for_all_words(connected: Stage) -> None:
    await connected.task(connections=("hub", "mail"))
    await connected.work()
    offer = next(o for o in connected.engine.requests[-1].tools if o.tool.name == "search")
    text = CountedText("Finds what is long lost.")
    offers = {"mail/search": replace(offer, description=text)}

    assert finding.search(offers, "find long lost mail") == ["mail/search"]
    assert text.prepared == 1


async def test_many_small_tools_are_found_by_words_too(
    connected: Stage, servers: FakeServers
) -> None:
    tools = [tool(f"small_{number}") for number in range(finding.MAX_OFFERED_TOOLS)]
    servers.add(connected, "small", tools=tools)
    await connected.task(connections=("small",))
    await connected.work()
    assert {one.name for one in tools} <= listed(connected)

    await connected.task(connections=("small", "mail"))
    await connected.work()
    assert {"search", "send", FIND_TOOL, USE_TOOL} <= listed(connected)
    assert "small_0" not in listed(connected)


async def test_a_tool_that_was_found_passes_the_gate_under_its_own_name(
    connected: Stage, servers: FakeServers
) -> None:
    read = Call(USE_TOOL, {"name": "hub/list_issues", "arguments": {"words": "open"}})
    create = Call(USE_TOOL, {"name": "hub/create_issue", "arguments": {"words": "Broken"}})
    connected.engine.then(read, create)
    task = await connected.task(connections=("hub",))
    await connected.work()

    assert servers["hub"].calls == [("list_issues", {"words": "open"})]
    question = connected.question(task)
    assert question.purpose is Purpose.APPROVAL
    (bound,) = question.binds_to["calls"]
    assert (bound["server"], bound["tool"]) == ("hub", "create_issue")
    assert bound["definition"] == MANY[0].accepted
    assert 'hub/create_issue {"words":"Broken"}' in question.prompt

    connected.engine.then(create, End({"complete": True}))
    await connected.answer(task, YES)
    await connected.work()

    assert servers["hub"].calls[-1] == ("create_issue", {"words": "Broken"})
    recorded = connected.database.run(lambda tx: tx.connection_calls.page(USER, limit=9))
    assert [(one.server, one.tool) for one in recorded] == [
        ("hub", "create_issue"),
        ("hub", "list_issues"),
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"name": "mail/send"}, "There is no tool 'mail/send'"),
        ({"name": 3}, "There is no tool '3'"),
        ({}, "There is no tool 'None'"),
        ({"name": "hub/list_issues", "arguments": [1]}, "have to be a JSON object"),
    ],
)
async def test_what_cannot_be_meant_is_refused(
    connected: Stage, servers: FakeServers, arguments: dict[str, object], told: str
) -> None:
    connected.engine.then(
        Call(USE_TOOL, arguments), Call(FIND_TOOL, {"words": "zebra"}), End({"complete": True})
    )
    await connected.task(connections=("hub",))

    await connected.work()

    assert told in connected.engine.results[0].text
    assert connected.engine.results[1].text == "Nothing fits. Try other words."
    assert servers["hub"].calls == []


def test_few_tools_are_offered_as_they_are() -> None:
    assert finding.fit([]) == []


async def test_what_servers_say_of_tools_that_were_found_is_outside_text(
    connected: Stage,
) -> None:
    connected.engine.then(Call(FIND_TOOL, {"words": "issues"}), End({"complete": True}))
    task = await connected.task(connections=("hub",))

    await connected.work()

    assert connected.load(task).outside_read
