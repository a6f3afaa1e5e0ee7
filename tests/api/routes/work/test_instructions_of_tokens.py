"""A token tells work of its user nothing to do with a connection or a folder that it was not given.

Where it is refused, it is told what it lacks. In chats it speaks as before.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import httpx2
import pytest
from support.doubles.engine import Call, End
from support.doubles.tool_servers import FakeServers
from support.people.mcp_clients import over_http, text
from support.people.task_calls import propose
from support.people.tool_calls import children
from support.requirements import requirement
from support.stage.api_stage import AskAs, Asker
from support.stage.make import USER
from support.stage.stage import Stage

from backburner.actions.deps import FolderRules
from backburner.api.app import build_api
from backburner.core.conversation import Conversation, Status
from backburner.core.ids import ConversationId
from backburner.core.question import YES, Purpose
from backburner.ports import FolderContent
from backburner.tools.mcp_server import McpServer
from backburner.tools.toolbox import Toolbox

APP = "/srv/app"
WORDS = "Search the mail for password resets."
TASK = {"name": "Weekly", "prompt": "Count my mails.", "interval": "24h"}
WRITER = ("read", "write")


async def read_folder(path: str) -> FolderContent:
    return FolderContent(path=path, instructions={})


@pytest.fixture
def servers() -> FakeServers:
    return FakeServers()


@pytest.fixture
def stage(set_up: Callable[..., Stage], servers: FakeServers) -> Stage:
    return set_up(
        toolbox=lambda deps: Toolbox(deps, open_session=servers.open_session),
        folders=FolderRules(machine="00aa", may_be_added=True, read=read_folder),
    )


@pytest.fixture
async def owner(ask_as: AskAs, stage: Stage, servers: FakeServers) -> Asker:
    """The command line of the server's machine. No chat uses the mail without being told to."""
    asker = await ask_as(USER)
    servers.add(stage, in_chats=False)
    await asker.do("POST", "/api/folders", {"path": APP})
    return asker


@pytest.fixture
async def mcp(stage: Stage) -> AsyncIterator[httpx2.AsyncClient]:
    api = build_api(stage.deps, hosts={"localhost"}, checks={}, tools=McpServer(stage.deps))
    transport = httpx2.ASGITransport(app=api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        yield http


async def make_client(owner: Asker, scopes: Sequence[str] = WRITER, **given: Any) -> Asker:
    body = {"name": "editor", "scopes": list(scopes), **given}
    made = await owner.do("POST", "/api/tokens", body)
    return Asker(owner.client, made["token"], owner.api)


async def add_task(owner: Asker, **more: Any) -> str:
    task = await owner.do("POST", "/api/tasks", TASK | {"connections": ["mail"]} | more)
    return str(task["id"])


def load(stage: Stage, which: str) -> Conversation:
    return stage.database.run(lambda tx: tx.conversations.load(USER, ConversationId(which)))


#: What changes the work of a task, by method, path and body.
INSTRUCTIONS = [
    ("PATCH", "/api/tasks/{}", {"prompt": WORDS}),
    ("PATCH", "/api/tasks/{}", {"description": WORDS}),
    ("PATCH", "/api/tasks/{}", {"tools": ["mail/search"]}),
    ("PUT", "/api/conversations/{}/schedule", {"what": WORDS, "when": "every day at 8"}),
    ("POST", "/api/conversations/{}/messages", {"content": WORDS}),
    ("PUT", "/api/conversations/{}/messages/last", {"content": WORDS}),
]


@requirement("A-mcp-isolation")
@pytest.mark.parametrize(("method", "path", "body"), INSTRUCTIONS)
async def test_a_write_token_does_not_turn_a_task_of_its_user_to_the_mail(
    owner: Asker, stage: Stage, servers: FakeServers, method: str, path: str, body: dict[str, Any]
) -> None:
    task = await add_task(owner)
    if path.endswith("/last"):
        await owner.do("POST", f"/api/conversations/{task}/messages", {"content": "Hello."})
    await stage.work()
    before, client = load(stage, task), await make_client(owner)
    for _ in range(2):
        stage.engine.then(Call("search", {"words": "password reset"}), End({"complete": True}))

    refused = await client(method, path.format(task), body)

    assert refused.status_code == 403, refused.text
    assert "uses the connection mail, which this token was not given" in refused.json()["detail"]
    assert "scope approve" in refused.json()["hint"]
    assert "`--connection mail`" in refused.json()["hint"]
    assert load(stage, task) == before
    await stage.work()
    assert servers["mail"].calls == []
    assert not any(WORDS in request.prompt for request in stage.engine.requests)


@pytest.mark.parametrize(("method", "path", "body"), INSTRUCTIONS)
@pytest.mark.parametrize("by", ["approve", "given", "no connection"])
async def test_a_token_that_may_consent_or_was_given_what_the_task_uses_changes_it(
    owner: Asker, stage: Stage, by: str, method: str, path: str, body: dict[str, Any]
) -> None:
    task = await add_task(owner, connections=[] if by == "no connection" else ["mail"])
    await owner.do("POST", f"/api/conversations/{task}/messages", {"content": "Hello."})
    await stage.work()
    scopes = (*WRITER, "approve") if by == "approve" else WRITER
    client = await make_client(owner, scopes, connections=["mail"] if by == "given" else [])

    await client.do(method, path.format(task), body)


async def test_a_write_token_does_not_turn_a_task_of_its_user_to_their_folder(
    owner: Asker, stage: Stage
) -> None:
    task = await add_task(owner, folder=APP)
    plain, given = await make_client(owner), await make_client(owner, uses=["folders"])
    both = await make_client(owner, uses=["folders"], connections=["mail"])
    await stage.work()

    answers = [
        await client("PATCH", f"/api/tasks/{task}", {"prompt": WORDS})
        for client in (plain, given, both)
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 200]
    hints = [answer.json()["hint"] for answer in answers[:2]]
    assert "`--connection mail --with folders`" in hints[0]
    assert "`--connection mail`" in hints[1]
    assert "the connection mail and a folder" in answers[0].json()["detail"]


async def test_a_write_token_times_runs_and_answers_work_that_uses_more_than_it(
    owner: Asker, stage: Stage
) -> None:
    question = {"type": "input", "prompt": "Since when?"}
    stage.engine.then(End({"needs_input": True, "message": "Hm.", "question": question}))
    task, client = await add_task(owner), await make_client(owner)
    await stage.work()

    await client.do("POST", f"/api/conversations/{task}/messages", {"content": "Monday."})
    await stage.work()
    assert "Monday." in stage.engine.requests[-1].prompt
    for method, path, body in (
        ("PATCH", "tasks/{}", {"interval": "12h", "notify": "always", "connections": ["mail"]}),
        ("PUT", "conversations/{}/schedule", {"when": "every day at 8"}),
        ("POST", "tasks/{}/pause", None),
        ("POST", "tasks/{}/resume", None),
        ("POST", "tasks/{}/run-now", None),
        ("POST", "tasks/{}/test-run", None),
    ):
        await client.do(method, f"/api/{path.format(task)}", body)
    # Without the mail, it is like other work.
    await client.do("PATCH", f"/api/tasks/{task}", {"prompt": WORDS, "connections": []})


async def find_proposal(owner: Asker, stage: Stage) -> str:
    """Let an agent of the owner propose work that uses the mail."""
    chat = await stage.chat()
    await owner.do("PUT", f"/api/conversations/{chat.id}/connections", {"names": ["mail"]})
    stage.engine.then(propose(connections=["mail"]))
    await stage.say(chat, "Think of something useful.")
    await stage.work()
    (proposal,) = (await owner.get("/api/tasks", status="proposed"))["items"]
    assert proposal["connections"] == ["mail"]
    return str(proposal["id"])


#: What takes a proposal away without a yes, and what brings it back; `{p}` is its parent.
WITHDRAWALS = {
    "delete": [("DELETE", "{c}"), ("POST", "{c}/restore")],
    "delete its parent": [("DELETE", "{p}"), ("POST", "{p}/restore")],
    "archive": [("POST", "{c}/archive"), ("POST", "{c}/reopen")],
    "archive its parent": [("POST", "{p}/archive"), ("POST", "{c}/reopen")],
    "cancel": [("POST", "{c}/cancel")],
    "cancel and reopen": [("POST", "{c}/cancel"), ("POST", "{c}/reopen")],
    "cancel as a task": [("POST", "{t}/cancel"), ("POST", "{c}/reopen")],
    "reject": [("OWNER", "{t}/reject"), ("POST", "{c}/reopen")],
    "delete what was archived": [
        ("POST", "{c}/archive"),
        ("DELETE", "{c}"),
        ("POST", "{c}/restore"),
        ("POST", "{c}/reopen"),
    ],
}


@requirement("A-mcp-isolation")
@pytest.mark.parametrize("way", WITHDRAWALS.values(), ids=WITHDRAWALS)
async def test_a_write_token_starts_no_proposal_by_taking_it_away_and_back(
    owner: Asker, stage: Stage, servers: FakeServers, way: list[tuple[str, str]]
) -> None:
    which, client = await find_proposal(owner, stage), await make_client(owner)
    paths = {
        "c": f"/api/conversations/{which}",
        "t": f"/api/tasks/{which}",
        "p": f"/api/conversations/{load(stage, which).parent_id}",
    }
    await client.do("PATCH", paths["t"], {"prompt": WORDS})
    await client.do("PATCH", paths["t"], {"interval": "12h"})

    for method, path in way:
        by = owner if method == "OWNER" else client
        await by.do(method.replace("OWNER", "POST"), path.format_map(paths))
    for method, path, body in (
        ("PUT", f"{paths['c']}/schedule", {"when": "now"}),
        ("POST", f"{paths['c']}/run-now", None),
        ("POST", f"{paths['c']}/resume", None),
        ("POST", f"{paths['t']}/test-run", None),
    ):
        await client(method, path, body)
    stage.engine.then(Call("search", {"words": "password reset"}), End({"complete": True}))
    await stage.work()

    assert servers["mail"].calls == []
    assert not any(WORDS in request.prompt for request in stage.engine.requests)
    if len(way) > 1:
        # The owner is asked again, about what it is now.
        (asked,) = (await owner.get("/api/questions"))["items"]
        assert WORDS in asked["prompt"]
        assert "CI broke twice this week." in asked["prompt"]
        await owner.do("POST", f"/api/questions/{asked['id']}/answer", {"answer": YES})
        assert load(stage, which).status is Status.BACKGROUND


async def test_a_write_token_tests_no_proposal_that_uses_more_than_it(
    owner: Asker, stage: Stage
) -> None:
    which = await find_proposal(owner, stage)
    plain, given = await make_client(owner), await make_client(owner, connections=["mail"])

    refused = await plain("POST", f"/api/tasks/{which}/test-run")

    assert refused.status_code == 403
    assert "the connection mail" in refused.json()["detail"]
    await given.do("POST", f"/api/tasks/{which}/test-run")


async def test_a_write_token_follows_up_on_no_job_that_uses_more_than_it(
    owner: Asker, stage: Stage
) -> None:
    chat = await owner.do("POST", "/api/conversations", {"connections": ["mail"]})
    body = {"description": "Mail", "prompt": "Count.", "conversation": chat["id"]}
    job = await owner.do("POST", "/api/jobs", body | {"connections": ["mail"]})
    await stage.work()
    assert load(stage, job["id"]).ended_as is not None
    plain, given = await make_client(owner), await make_client(owner, connections=["mail"])

    path = f"/api/jobs/{job['id']}/resume"
    refused = await plain("POST", path, {"message": WORDS})

    assert refused.status_code == 403
    assert "the connection mail" in refused.json()["detail"]
    await given.do("POST", path, {"message": WORDS})


async def test_a_write_token_talks_in_a_chat_of_its_user_and_gives_it_no_work(
    owner: Asker, stage: Stage, servers: FakeServers
) -> None:
    servers.add(stage, "wiki")
    chat, client = await stage.chat(), await make_client(owner)

    await client.do("POST", f"/api/conversations/{chat.id}/messages", {"content": "Hello."})
    await stage.work()
    assert {offer.tool.server for offer in stage.engine.requests[-1].tools} >= {"wiki"}

    work = {"what": WORDS, "when": "every day at 8"}
    refused = await client("PUT", f"/api/conversations/{chat.id}/schedule", work)
    assert refused.status_code == 403
    assert "the connection wiki" in refused.json()["detail"]


@requirement("A-mcp-isolation")
@pytest.mark.parametrize("by", ["a client", "an agent"])
async def test_a_client_over_mcp_and_an_agent_of_a_token_only_propose_it(
    owner: Asker, stage: Stage, mcp: httpx2.AsyncClient, by: str
) -> None:
    task, client = await add_task(owner), await make_client(owner)
    await stage.work()
    change = {"task": "Weekly", "prompt": WORDS}
    if by == "a client":
        async with over_http(mcp, client.token) as opened:
            said = text(await opened.call_tool("task_update", change))
    else:
        stage.engine.then(Call("task_update", change))
        await client.do("POST", "/api/conversations", {"message": "Change Weekly."})
        await stage.work()
        said = stage.engine.results[-1].text

    assert "nothing changes before the owner says yes" in said
    assert load(stage, task).state.context["prompt"] == TASK["prompt"]
    (asked,) = (await owner.get("/api/questions"))["items"]
    assert asked["purpose"] == Purpose.CHANGE
    await owner.do("POST", f"/api/questions/{asked['id']}/answer", {"answer": YES})
    assert load(stage, task).state.context["prompt"] == WORDS


async def test_an_agent_of_a_token_proposes_to_change_what_its_user_gave_more_than_it_has(
    owner: Asker, stage: Stage
) -> None:
    client = await make_client(owner)
    work = {"what": "Look.", "when": "every day at 8"}
    stage.engine.then(Call("schedule_work", work | {"title": "Below", "separate": True}))
    chat = await client.do("POST", "/api/conversations", {"message": "Look every day."})
    await stage.work()
    (child,) = children(stage, load(stage, chat["id"]))

    for what, given in (("Look twice.", []), (WORDS, ["mail"])):
        change = Call("schedule_work", work | {"what": what, "change": "Below"})
        await owner.do("PUT", f"/api/conversations/{child.id}/connections", {"names": given})
        stage.engine.then(change)
        await client.do("POST", f"/api/conversations/{chat['id']}/messages", {"content": "More."})
        await stage.work()

    first, second = [result.text for result in stage.engine.results[-2:]]
    assert first.startswith("Changed.")
    assert "nothing changes before the owner says yes" in second


async def test_a_client_over_mcp_changes_work_that_uses_no_more_than_it(
    owner: Asker, stage: Stage, mcp: httpx2.AsyncClient
) -> None:
    with_mail = await add_task(owner)
    without = await add_task(owner, name="Plain", connections=[])
    await stage.work()
    given = await make_client(owner, connections=["mail"])
    async with over_http(mcp, given.token) as opened:
        for name in ("Weekly", "Plain"):
            await opened.call_tool("task_update", {"task": name, "prompt": WORDS})

    assert (await owner.get("/api/questions"))["items"] == []
    for task in (with_mail, without):
        assert load(stage, task).state.context["prompt"] == WORDS
