"""Connections are added once their server has answered, shown, changed and removed."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select
from support.doubles.listed_servers import SEARCH, SEND, URL, ListedServers
from support.people.callers import local_caller, token_caller
from support.requirements import requirement
from support.stage import make
from support.stage.make import MATE, USER
from support.stage.scene import read_everything
from support.stage.stage import Stage

from backburner.actions.connections import definitions, manage, sessions
from backburner.actions.connections.manage import (
    MAX_CONNECTIONS,
    ConnectionChanges,
    NewConnection,
    ShownConnection,
)
from backburner.core import transitions
from backburner.core.accounts import Caller, Scope
from backburner.core.connections.connection import AuthKind, Connection, ConnectionState
from backburner.core.conversation import Conversation
from backburner.core.errors import (
    BadRequest,
    Conflict,
    ConnectionFailed,
    LimitReached,
    NotAllowed,
    NotFound,
    SignedOut,
)
from backburner.core.ids import ConnectionId, GrantId, QuestionId
from backburner.core.question import NO, YES, Purpose
from backburner.core.tool_policy import Grant, Tool, ToolCall, approval_binding
from backburner.ports import Tx
from backburner.store import tables

MAIL = NewConnection(url=URL, name="mail", title="My mail")
KEY = {"Authorization": "Bearer canary-5d1f"}
ME = local_caller()


async def add(stage: Stage, new: NewConnection = MAIL, caller: Caller = ME) -> ConnectionId:
    return (await manage.add(stage.deps, caller, new)).connection_id


async def show(stage: Stage, connection_id: ConnectionId) -> ShownConnection:
    return await manage.show(stage.deps, USER, connection_id)


async def only(stage: Stage) -> Connection:
    (shown,) = await manage.list_connections(stage.deps, USER)
    return shown.connection


def count(stage: Stage) -> int:
    return len(stage.database.run(lambda tx: tx.connections.list(USER)))


async def test_a_server_is_added_with_the_tools_that_it_lists(
    stage: Stage, servers: ListedServers
) -> None:
    servers.left_out = {"huge": "Its schema is too large."}

    check = await manage.add(stage.deps, ME, MAIL)

    shown = await show(stage, check.connection_id)
    connection = shown.connection
    assert (connection.name, connection.title, connection.url) == ("mail", "My mail", URL)
    assert (connection.auth, connection.state) == (AuthKind.NONE, ConnectionState.READY)
    assert [tool.name for tool in shown.tools if tool.is_offered] == ["search", "send"]
    assert check.left_out == servers.left_out
    assert servers.closed == 1


async def test_a_name_and_a_title_are_made_from_the_address(stage: Stage) -> None:
    names = []
    for number in range(2):
        shown = await show(
            stage, await add(stage, NewConnection(url=f"https://mcp.linear.app/{number}"))
        )
        names.append((shown.connection.name, shown.connection.title))
    titled = await show(stage, await add(stage, NewConnection(url=URL, title="Work Mail")))

    assert names == [("linear", "Linear"), ("linear-2", "Linear 2")]
    assert titled.connection.name == "work-mail"


async def test_a_server_is_added_again_only_under_a_name(stage: Stage) -> None:
    await add(stage, NewConnection(url=URL))
    with pytest.raises(Conflict, match=r"You have this server already as mail\. .* a name of"):
        await add(stage, NewConnection(url=f"{URL}/"))
    await add(stage, NewConnection(url=URL, name="second"))
    await add(stage, NewConnection(url=URL, title="Work mail"))
    with pytest.raises(Conflict, match="already"):
        await add(stage, NewConnection(url=URL, title="work mail"))

    names = [one.connection.name for one in await manage.list_connections(stage.deps, ME.user)]
    assert sorted(names) == ["mail", "second", "work-mail"]


async def test_a_server_that_wants_a_sign_in_is_added_to_be_signed_in_to(
    stage: Stage, servers: ListedServers
) -> None:
    servers.wants = KEY

    shown = await show(stage, await add(stage))

    assert (shown.connection.auth, shown.connection.state) == (
        AuthKind.OAUTH,
        ConnectionState.SIGNING_IN,
    )
    assert shown.tools == []


async def test_nothing_is_added_if_the_server_cannot_be_reached(
    stage: Stage, servers: ListedServers
) -> None:
    servers.error = ConnectionFailed("mail.example does not answer.")
    before = stage.database.run(read_everything)

    with pytest.raises(ConnectionFailed, match="does not answer"):
        await add(stage)

    assert stage.database.run(read_everything) == before


async def test_what_was_not_checked_is_listed_at_its_first_use(
    stage: Stage, servers: ListedServers
) -> None:
    servers.error = ConnectionFailed("mail.example does not answer.")

    shown = await show(stage, await add(stage, replace(MAIL, check=False)))

    assert shown.connection.listed_at is None
    assert servers.opened == []


async def test_a_program_of_the_operators_is_added_by_its_name(
    stage: Stage, servers: ListedServers
) -> None:
    shown = await show(stage, await add(stage, NewConnection(program="wiki")))

    assert (shown.connection.name, shown.connection.program) == ("wiki", "wiki")
    (server,) = servers.opened
    assert server.program is not None
    assert server.program.command == ("wiki-server",)


@pytest.mark.parametrize(
    ("new", "kind"),
    [
        (NewConnection(), BadRequest),
        (NewConnection(url=URL, program="wiki"), BadRequest),
        (NewConnection(program="shell"), NotFound),
        (NewConnection(program="wiki", headers=KEY), BadRequest),
        (NewConnection(program="wiki", auth=AuthKind.OAUTH), BadRequest),
        (NewConnection(url=URL, headers=KEY, auth=AuthKind.OAUTH), BadRequest),
        (NewConnection(url="mail.example"), BadRequest),
        (NewConnection(url=f"{URL}?token=x"), BadRequest),
        (NewConnection(url=URL, name="Mail"), BadRequest),
        (NewConnection(url=URL, name="backburner"), BadRequest),
        (NewConnection(url=URL, title="\u202e"), BadRequest),
        (NewConnection(url=URL, headers={"Host": "x"}), BadRequest),
        (NewConnection(url=URL, headers={"X Y": "x"}), BadRequest),
        (NewConnection(url=URL, headers={"X-Key": "x\r\nHost: y"}), BadRequest),
        (NewConnection(url=URL, headers={"X-Key": " "}), BadRequest),
        (NewConnection(url=URL, headers={"X-Key": "x", "x-key": "y"}), BadRequest),
        (NewConnection(url=URL, headers={f"X-{number}": "x" for number in range(11)}), BadRequest),
    ],
)
async def test_what_cannot_be_a_connection_is_refused_before_anything_is_asked(
    stage: Stage, servers: ListedServers, new: NewConnection, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        await add(stage, new)

    assert servers.opened == []
    assert count(stage) == 0


async def test_a_name_is_used_once_and_each_user_has_their_own(stage: Stage) -> None:
    stage.user(MATE)
    await add(stage)
    await add(stage, caller=local_caller(MATE))

    with pytest.raises(Conflict, match="already"):
        await add(stage)


async def test_a_user_has_so_many_connections_and_no_more(stage: Stage) -> None:
    for number in range(MAX_CONNECTIONS):
        await add(stage, replace(MAIL, name=f"mail-{number}", check=False))

    with pytest.raises(LimitReached):
        await add(stage)


async def test_headers_are_sealed_and_shown_nowhere(stage: Stage, servers: ListedServers) -> None:
    servers.wants = KEY
    new = replace(MAIL, headers=KEY)

    shown = await show(stage, await add(stage, new))

    assert shown.connection.auth is AuthKind.HEADER
    assert shown.connection.headers == ("Authorization",)
    assert [tool.name for tool in shown.tools] == ["search", "send"]
    assert (await definitions.refresh(stage.deps, ME, shown.connection.id)).error is None
    assert "canary" not in str(stage.database.run(read_everything))
    assert "canary" not in repr(new)


async def test_headers_that_the_server_refuses_are_not_kept(
    stage: Stage, servers: ListedServers
) -> None:
    servers.wants = KEY

    with pytest.raises(ConnectionFailed, match=r"does not accept this key\. Nothing was changed"):
        await add(stage, replace(MAIL, headers={"Authorization": "Bearer wrong"}))

    assert count(stage) == 0


async def test_other_headers_replace_those_before_once_the_server_accepts_them(
    stage: Stage, servers: ListedServers
) -> None:
    servers.wants = KEY
    which = await add(stage, replace(MAIL, headers=KEY))
    servers.wants = {"X-Key": "canary-other"}
    failed = await definitions.refresh(stage.deps, ME, which)
    signed_out = await only(stage)
    with pytest.raises(ConnectionFailed):
        await manage.set_headers(stage.deps, ME, which, {"X-Key": "wrong"})
    still = await only(stage)

    await manage.set_headers(stage.deps, ME, which, {"X-Key": "canary-other"})

    assert isinstance(failed.error, SignedOut)
    assert signed_out.state is still.state is ConnectionState.SIGNED_OUT
    now = await only(stage)
    assert (now.state, now.headers, now.last_error) == (ConnectionState.READY, ("X-Key",), "")
    assert now.sign_in_revision == signed_out.sign_in_revision + 1
    assert (await definitions.refresh(stage.deps, ME, which)).error is None


async def test_a_program_takes_no_headers(stage: Stage) -> None:
    which = await add(stage, NewConnection(program="wiki"))

    with pytest.raises(Conflict):
        await manage.set_headers(stage.deps, ME, which, KEY)


async def test_a_connection_is_changed_and_keeps_its_name(stage: Stage) -> None:
    which = await add(stage)

    for changes in (
        ConnectionChanges(title="Post", in_chats=False),
        ConnectionChanges(disabled=True),
        ConnectionChanges(call_timeout=timedelta(minutes=5)),
        ConnectionChanges(),
    ):
        await manage.change(stage.deps, ME, which, changes)
    for timeout in (timedelta(seconds=4), timedelta(minutes=31)):
        with pytest.raises(BadRequest, match="5 seconds to 30 minutes"):
            await manage.change(stage.deps, ME, which, ConnectionChanges(call_timeout=timeout))

    found = await only(stage)
    assert (found.name, found.title) == ("mail", "Post")
    assert (found.in_chats, found.disabled) == (False, True)
    assert found.call_timeout == timedelta(minutes=5)


async def test_a_program_that_the_operator_removed_is_missed_in_words(stage: Stage) -> None:
    which = await add(stage, NewConnection(program="wiki"))
    stage.deps = replace(stage.deps, mcp_programs={})

    check = await definitions.refresh(stage.deps, ME, which)

    assert check.error is not None
    assert "has removed from the settings" in check.error.message
    assert (await only(stage)).last_error == str(check.error)


async def test_a_removed_connection_leaves_no_secret_tool_or_grant(
    stage: Stage, servers: ListedServers
) -> None:
    servers.wants = KEY
    which = await add(stage, replace(MAIL, headers=KEY))
    other = await add(stage, replace(MAIL, name="wiki", headers=KEY))
    task = await stage.task(connections=("mail", "wiki"))
    lasting = [
        Grant(id=GrantId(f"g_{server}"), server=server, tool="send", definition="d")
        for server in ("mail", "wiki")
    ]
    stage.database.run(lambda tx: tx.grants.give(USER, task.id, lasting))

    await manage.remove(stage.deps, ME, which)

    assert (await only(stage)).id == other
    kept = stage.database.run(
        lambda tx: tx.connection.execute(select(tables.secrets.c.name)).scalars().all()
    )
    assert kept == [sessions.headers_secret(other)]
    valid = stage.database.run(lambda tx: tx.grants.valid(USER, task.id))
    assert [grant.server for grant in valid] == ["wiki"]
    assert stage.load(task).connections == ("wiki",)
    with pytest.raises(NotFound):
        await manage.remove(stage.deps, ME, which)


async def test_a_call_that_waits_for_approval_is_declined_with_its_connection(
    stage: Stage,
) -> None:
    which = await add(stage)
    waiting, other = await stage.task(), await stage.task()
    for task, server in ((waiting, "mail"), (other, "wiki")):
        ask(stage, task, server)

    await manage.remove(stage.deps, ME, which)

    assert stage.load(waiting).questions == ()
    assert any("Answer: no" in text for text in stage.said(waiting))
    assert stage.question(other).purpose is Purpose.APPROVAL


def ask(stage: Stage, conversation: Conversation, server: str) -> None:
    """Let a call of a server's tool wait for approval."""
    call = ToolCall(Tool(server=server, name="send", definition="d"), {})
    question = make.question(
        id=QuestionId(f"q_{server}"),
        purpose=Purpose.APPROVAL,
        options=(YES, NO),
        binds_to=approval_binding([call]),
    )

    def work(tx: Tx) -> None:
        here = tx.conversations.lock(USER, conversation.id)
        tx.conversations.save(transitions.ask_owner(here, question))

    stage.database.run(work)


@pytest.mark.parametrize("scopes", [(), (Scope.READ, Scope.WRITE, Scope.OPERATE)])
async def test_who_may_not_consent_changes_nothing(stage: Stage, scopes: tuple[Scope, ...]) -> None:
    which = await add(stage)
    (tool, _) = (await show(stage, which)).tools
    caller = token_caller(*scopes)
    before = stage.database.run(read_everything)

    for attempt in (
        manage.add(stage.deps, caller, replace(MAIL, name="other")),
        manage.change(stage.deps, caller, which, ConnectionChanges(in_chats=True)),
        manage.set_headers(stage.deps, caller, which, KEY),
        manage.remove(stage.deps, caller, which),
        definitions.accept(stage.deps, caller, which, {tool.name: tool.digest}),
        definitions.tick(stage.deps, caller, which, tool.name, {"read_only": True}),
    ):
        with pytest.raises(NotAllowed, match="may not consent"):
            await attempt
    assert stage.database.run(read_everything) == before


async def test_a_token_that_may_consent_adds_a_connection(stage: Stage) -> None:
    await add(stage, caller=token_caller(Scope.APPROVE))

    assert count(stage) == 1


@requirement("A-mcp-isolation")
async def test_nobody_finds_the_connection_of_another(stage: Stage) -> None:
    which = await add(stage)
    stage.user(MATE)
    stranger = local_caller(MATE)
    before = stage.database.run(read_everything)

    for attempt in (
        manage.show(stage.deps, MATE, which),
        manage.change(stage.deps, stranger, which, ConnectionChanges(title="Mine")),
        manage.set_headers(stage.deps, stranger, which, KEY),
        manage.remove(stage.deps, stranger, which),
        definitions.refresh(stage.deps, stranger, which),
        definitions.accept(stage.deps, stranger, which, {"send": "d"}),
        definitions.tick(stage.deps, stranger, which, "send", {"read_only": True}),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert await manage.list_connections(stage.deps, MATE) == []
    assert stage.database.run(read_everything) == before


async def test_every_change_is_recorded_without_a_secret(
    stage: Stage, servers: ListedServers
) -> None:
    which = await add(stage)
    await manage.change(stage.deps, ME, which, ConnectionChanges(title="Post"))
    servers.wants = KEY
    await manage.set_headers(stage.deps, ME, which, KEY)
    servers.tools = [SEARCH, replace(SEND, description="Other.")]
    await definitions.refresh(stage.deps, ME, which)
    changed = (await show(stage, which)).tools[1]
    await definitions.accept(stage.deps, ME, which, {"send": changed.digest})
    await definitions.tick(stage.deps, ME, which, "send", {"repeatable": True})
    await manage.remove(stage.deps, ME, which)

    entries = stage.database.run(lambda tx: tx.audit.page(limit=99))[::-1]
    assert [(entry.act.value, entry.detail) for entry in entries] == [
        ("connection_added", "mail"),
        ("connection_changed", "mail"),
        ("connection_signed_in", "mail"),
        ("tools_accepted", "mail: send"),
        ("tool_ticked", "mail: send (repeatable=True)"),
        ("connection_removed", "mail"),
    ]
    assert {(entry.actor, entry.user) for entry in entries} == {(USER, USER)}


async def test_every_change_is_in_the_feed(stage: Stage, servers: ListedServers) -> None:
    numbers = [stage.database.run(lambda tx: tx.events.latest(USER))]

    def count() -> None:
        numbers.append(stage.database.run(lambda tx: tx.events.latest(USER)))

    which = await add(stage)
    count()
    await manage.change(stage.deps, ME, which, ConnectionChanges(title="Post"))
    count()
    servers.tools = [SEARCH]
    await definitions.refresh(stage.deps, ME, which)
    count()
    await definitions.tick(stage.deps, ME, which, "search", {"read_only": True})
    count()
    await sessions.note_use(stage.deps, await only(stage), ConnectionFailed("No answer."))
    count()
    await manage.remove(stage.deps, ME, which)
    count()

    assert numbers == sorted(set(numbers))


async def test_a_use_is_recorded_with_what_went_wrong(stage: Stage) -> None:
    which = await add(stage)
    connection = await only(stage)
    error = ConnectionFailed("No answer\x1b[31m " + "x" * 1000)

    await sessions.note_use(stage.deps, connection, error)
    failed = await only(stage)
    await sessions.note_use(stage.deps, connection)
    worked = await only(stage)
    await definitions.refresh(stage.deps, ME, which)

    assert failed.last_error.startswith("No answer\\u001b[31m")
    assert len(failed.last_error) == sessions.MAX_ERROR_CHARS
    assert failed.last_error_at is not None
    assert (worked.last_error, worked.last_error_at) == ("", None)
    # Whoever looks whether it works does not use it.
    assert (worked.last_used_at, (await only(stage)).last_used_at) == (None, None)
    await manage.remove(stage.deps, ME, which)
    await sessions.note_use(stage.deps, connection, error)


async def test_a_refusal_of_an_earlier_sign_in_does_not_sign_out(
    stage: Stage, servers: ListedServers
) -> None:
    servers.wants = KEY
    which = await add(stage, replace(MAIL, headers=KEY))
    before = await only(stage)
    await manage.set_headers(stage.deps, ME, which, KEY)

    await sessions.note_use(stage.deps, before, SignedOut("Mail wants a sign-in."))
    still = await only(stage)
    await sessions.note_use(stage.deps, still, SignedOut("Mail wants a sign-in."))

    assert still.state is ConnectionState.READY
    assert (await only(stage)).state is ConnectionState.SIGNED_OUT


async def test_a_new_key_is_asked_for_once_if_a_server_wants_further_permissions(
    stage: Stage, servers: ListedServers
) -> None:
    servers.wants = KEY
    which = await add(stage, replace(MAIL, headers=KEY))
    refused = SignedOut("Mail wants further permissions.", scopes=("mail.send",))
    assert await sessions.note_use(stage.deps, await only(stage), refused)
    await manage.set_headers(stage.deps, ME, which, KEY)

    after = await only(stage)
    assert not await sessions.note_use(stage.deps, after, refused)
    assert (after.state, after.refused_scopes) == (ConnectionState.READY, ("mail.send",))
    assert (await only(stage)).state is ConnectionState.READY
