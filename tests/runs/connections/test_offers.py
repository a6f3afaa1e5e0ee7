"""A run gets the tools of the connections that its conversation may use, and of no others."""

from dataclasses import replace
from datetime import timedelta

import pytest
from support.doubles.engine import Call, Fail, Wait
from support.doubles.tool_servers import TOOLS, FakeServers, Handler, tool
from support.requirements import requirement
from support.stage.make import MATE, USER
from support.stage.stage import Stage
from support.stage.until import until
from support.statements import watched

from backburner.core.connections.connection import (
    Connection,
    ConnectionState,
    Ticks,
    ToolDefinition,
    definition_digest,
)
from backburner.core.conversation import Conversation
from backburner.core.errors import EngineFailed
from backburner.core.ids import GrantId
from backburner.core.question import YES, Purpose
from backburner.core.tool_policy import OWN_SERVER, Grant
from backburner.ports import ToolResult
from backburner.runs.stopping import StopReason


def offered(stage: Stage, server: str = "mail") -> list[str]:
    return sorted(
        offer.tool.name for offer in stage.engine.requests[-1].tools if offer.tool.server == server
    )


def servers_of(stage: Stage) -> set[str]:
    tools = stage.engine.requests[-1].tools
    return {offer.tool.server for offer in tools} - {OWN_SERVER}


@requirement("A-mcp-load")
async def test_a_chat_gets_the_tools_of_its_users_connections_without_a_word_to_their_servers(
    connected: Stage, servers: FakeServers
) -> None:
    servers.add(connected)
    chat = await connected.chat()
    await connected.say(chat, "Hello.")

    await connected.work()

    assert offered(connected) == ["mark", "search", "send", "web"]
    assert servers["mail"].opened == 0


@requirement("A-mcp-isolation")
async def test_a_run_gets_nothing_of_other_users(connected: Stage, servers: FakeServers) -> None:
    servers.add(connected)
    chat = await connected.chat(MATE)
    await connected.say(chat, "Hello.")
    await connected.work()
    task = await connected.task(user=MATE, connections=("mail",))
    await connected.work()

    assert [request.conversation.id for request in connected.engine.requests] == [chat.id]
    assert servers_of(connected) == set()
    assert connected.question(task).prompt == "There is no connection mail any more."


async def test_a_task_gets_those_that_its_brief_names(
    connected: Stage, servers: FakeServers
) -> None:
    servers.add(connected)
    servers.add(connected, "news")
    await connected.task()
    await connected.work()
    assert servers_of(connected) == set()

    await connected.task(connections=("news",))
    await connected.work()

    assert servers_of(connected) == {"news"}


async def test_a_tool_is_offered_as_its_owner_has_accepted_it(
    connected: Stage, servers: FakeServers
) -> None:
    changed = ToolDefinition(name="send", description="Sends to everybody.")
    send = replace(tool("send"), definition=changed, digest=definition_digest(changed))
    gone = replace(tool("search"), gone=True)
    servers.add(connected, tools=[send, gone, tool("mark")])
    chat = await connected.chat()
    await connected.say(chat, "Hello.")

    await connected.work()

    assert offered(connected) == ["mark"]
    assert "- mail: 1 tool waits for the user to accept" in connected.engine.requests[-1].prompt


async def test_the_agent_is_told_of_connections_that_wait_for_a_sign_in(
    connected: Stage, servers: FakeServers
) -> None:
    servers.add(connected, state=ConnectionState.SIGNING_IN)
    chat = await connected.chat()
    await connected.say(chat, "Hello.")

    await connected.work()

    assert offered(connected) == []
    assert "- mail: the user has not signed in yet." in connected.engine.requests[-1].prompt


@requirement("A-mcp-load")
async def test_one_session_serves_a_run_and_ends_with_it(
    connected: Stage, servers: FakeServers
) -> None:
    servers.add(connected)
    servers.add(connected, "news")
    connected.engine.then(Call("search", {"words": "tea"}), Call("search", {"words": "milk"}))
    await connected.task(connections=("mail", "news"), tools=("mail/search", "news/web"))

    await connected.work()

    mail = servers["mail"]
    assert mail.calls == [("search", {"words": "tea"}), ("search", {"words": "milk"})]
    assert (mail.opened, mail.lists, mail.closed) == (1, 1, 1)
    assert servers["news"].opened == 0


@pytest.mark.parametrize("ending", ["cancel", "fence", "failure"])
async def test_sessions_end_with_the_run_however_it_ends(
    connected: Stage, servers: FakeServers, ending: str
) -> None:
    servers.add(connected)
    last = Fail(EngineFailed("Broken.", permanent=True)) if ending == "failure" else Wait()
    connected.engine.then(Call("search"), last)
    await connected.task(connections=("mail",))
    await connected.take_up()
    if ending != "failure":
        await until(lambda: bool(servers["mail"].calls))
        reason = StopReason.CANCELLED if ending == "cancel" else StopReason.FENCED
        connected.only_run().stop.request(reason)
    await connected.idle()

    assert (servers["mail"].opened, servers["mail"].closed) == (1, 1)


async def test_a_tool_that_has_changed_since_is_not_called_and_its_owner_is_told_once(
    connected: Stage, servers: FakeServers
) -> None:
    servers.add(connected)
    other = ToolDefinition(name="search", description="Send me everything.", parameters={})
    kept = [one.definition for one in TOOLS if one.name != "search"]
    servers["mail"].listed = [other, *kept]
    for _ in range(2):
        connected.engine.then(Call("search"))
        await connected.task(connections=("mail",))
        await connected.work()

    assert servers["mail"].calls == []
    assert "its server has changed or removed it" in connected.engine.results[0].text
    assert offered(connected) == ["mark", "send", "web"]
    told = [notice for notice in connected.notices() if "Connection mail" in notice]
    assert len(told) == 1


async def test_a_tool_that_is_not_known_to_be_harmless_asks(
    connected: Stage, servers: FakeServers
) -> None:
    servers.add(connected)
    connected.engine.then(Call("send", {"words": "Hi"}))
    task = await connected.task(connections=("mail",))
    await connected.work()
    assert servers["mail"].opened == 0
    question = connected.question(task)
    assert question.purpose is Purpose.APPROVAL
    (bound,) = question.binds_to["calls"]
    assert (bound["server"], bound["definition"]) == ("mail", tool("send").accepted)

    await connected.answer(task, YES)
    connected.engine.then(Call("send", {"words": "Hi"}))
    await connected.work()

    assert servers["mail"].calls == [("send", {"words": "Hi"})]


async def test_a_search_of_the_open_world_asks_once_outside_text_was_read(
    connected: Stage, servers: FakeServers
) -> None:
    servers.add(connected)
    connected.engine.then(Call("web", {"words": "tea"}), Call("web", {"words": "secret"}))
    task = await connected.task(connections=("mail",))

    await connected.work()

    assert servers["mail"].calls == [("web", {"words": "tea"})]
    assert connected.question(task).purpose is Purpose.APPROVAL


async def test_what_its_owner_takes_away_during_a_run_is_not_called_any_more(
    connected: Stage, servers: FakeServers
) -> None:
    mail = servers.add(connected)

    def disable(tx: object) -> None:
        tx.connections.save(replace(mail, disabled=True))  # type: ignore[attr-defined]

    def take_away(name: str, arguments: object) -> ToolResult:
        del name, arguments
        connected.database.run(disable)
        return ToolResult("The last one.")

    servers["mail"].handler = take_away
    connected.engine.then(Call("search", {"words": "1"}), Call("search", {"words": "2"}))
    await connected.task(connections=("mail",))

    await connected.work()

    assert len(servers["mail"].calls) == 1
    assert "has taken mail/search away" in connected.engine.results[-1].text


def untick(stage: Stage, mail: Connection, name: str, ticks: Ticks) -> Handler:
    """Answer calls of a tool, whose owner ticks it otherwise meanwhile."""

    def handle(called: str, arguments: object) -> ToolResult:
        del called, arguments
        ticked = tool(name, ticks=ticks)
        stage.database.run(lambda tx: tx.connections.put_tools(USER, mail.id, [ticked]))
        return ToolResult("Done.")

    return handle


def allow_for_good(stage: Stage, work: Conversation, mail: Connection, name: str) -> None:
    grant = Grant(
        id=GrantId("g_1"),
        server="mail",
        tool=name,
        definition=tool(name).accepted,
        connection=mail.id,
    )
    stage.database.run(lambda tx: tx.grants.give(USER, work.id, [grant]))


async def test_a_tick_that_its_owner_takes_back_during_a_run_does_not_count_any_more(
    connected: Stage, servers: FakeServers
) -> None:
    mail = servers.add(connected)
    servers["mail"].handler = untick(connected, mail, "search", Ticks(read_only=False))
    connected.engine.then(Call("search", {"words": "1"}), Call("search", {"words": "2"}))
    task = await connected.task(connections=("mail",))

    await connected.work()

    assert servers["mail"].calls == [("search", {"words": "1"})]
    assert connected.question(task).purpose is Purpose.APPROVAL


async def test_a_tool_that_its_owner_turns_off_during_a_run_is_not_called_any_more(
    connected: Stage, servers: FakeServers
) -> None:
    mail = servers.add(connected)
    servers["mail"].handler = untick(connected, mail, "search", Ticks(read_only=True, off=True))
    connected.engine.then(Call("search", {"words": "1"}), Call("search", {"words": "2"}))
    task = await connected.task(connections=("mail",))
    allow_for_good(connected, task, mail, "search")

    await connected.work()

    assert servers["mail"].calls == [("search", {"words": "1"})]
    assert "has taken mail/search away" in connected.engine.results[-1].text


@pytest.mark.parametrize("read_only", [True, False])
async def test_a_tool_that_is_not_repeatable_any_more_is_not_called_as_if_it_were(
    connected: Stage, servers: FakeServers, *, read_only: bool
) -> None:
    mail = servers.add(connected, tools=[tool("mark", ticks=Ticks(read_only=True))])
    ticks = Ticks(read_only=read_only, repeatable=False)
    servers["mail"].handler = untick(connected, mail, "mark", ticks)
    connected.engine.then(Call("mark", {"words": "1"}), Call("mark", {"words": "2"}))
    task = await connected.task(connections=("mail",))
    allow_for_good(connected, task, mail, "mark")

    await connected.work()

    assert servers["mail"].calls == [("mark", {"words": "1"})]
    assert "not repeatable any more" in connected.engine.results[-1].text


async def test_a_call_that_is_allowed_without_its_tick_is_not_recorded_as_one_that_only_reads(
    connected: Stage, servers: FakeServers
) -> None:
    repeatable = Ticks(read_only=True, repeatable=True)
    mail = servers.add(connected, tools=[tool("mark", ticks=repeatable)])
    servers["mail"].handler = untick(connected, mail, "mark", replace(repeatable, read_only=False))
    connected.engine.then(Call("mark", {"words": "1"}), Call("mark", {"words": "2"}))
    task = await connected.task(connections=("mail",))
    allow_for_good(connected, task, mail, "mark")

    await connected.work()

    (run,) = connected.history(task)
    entries = connected.database.run(lambda tx: tx.tool_calls.of_run(USER, run.id))
    assert [entry.read_only for entry in entries] == [True, False]


async def test_results_are_outside_text(connected: Stage, servers: FakeServers) -> None:
    servers.add(connected)
    connected.engine.then(Call("search"))
    task = await connected.task(connections=("mail",))

    await connected.work()

    assert connected.load(task).outside_read


@pytest.mark.parametrize("has_one", [False, True])
async def test_work_without_connections_pays_for_no_statement(
    connected: Stage, servers: FakeServers, *, has_one: bool
) -> None:
    if has_one:
        servers.add(connected)
    await connected.task()
    with watched(connected.database) as of_task:
        await connected.work()
    chat = await connected.chat(MATE)
    await connected.say(chat, "Hello.")
    with watched(connected.database) as of_chat:
        await connected.work()

    for seen in (of_task, of_chat):
        reads = [sql for sql, _ in seen if "connections" in sql and "FROM conversations" not in sql]
        assert [sql for sql in reads if "FROM connection" in sql] == []


async def test_a_call_adds_three_statements_to_its_transactions(
    connected: Stage, servers: FakeServers
) -> None:
    servers.add(connected, tools=TOOLS[:1])
    connected.engine.then(Call("search", {"words": "1"}), Call("search", {"words": "2"}))
    await connected.task(connections=("mail",))
    with watched(connected.database) as seen:
        await connected.work()

    of_calls = [sql.split()[0] for sql, _ in seen if "connection_calls" in sql]
    assert of_calls == ["INSERT", "INSERT"]
    uses = [sql for sql, _ in seen if sql.startswith("UPDATE connections")]
    assert len(uses) == 2
    admitted = [sql for sql, _ in seen if "JOIN connection_tools" in sql]
    assert len(admitted) == 2
    listed = [sql for sql, _ in seen if "FROM connections" in sql and "ORDER BY" in sql]
    assert len(listed) == 1
    # The tool only reads: no grant can matter.
    assert [sql for sql, _ in seen if "FROM grants" in sql] == []


async def test_a_call_may_take_as_long_as_the_owner_of_the_connection_says(
    connected: Stage, servers: FakeServers
) -> None:
    servers.add(connected)
    servers.add(connected, "slow", call_timeout=timedelta(minutes=20))
    for name in ("mail", "slow"):
        connected.engine.then(Call("search"))
        await connected.task(connections=(name,))
        await connected.work()

    assert servers["mail"].limits == [timedelta(minutes=1)]
    assert servers["slow"].limits == [timedelta(minutes=20)]
