"""Consent has a scope of its own: what a token may not do in the name of its owner."""

from typing import Any

import httpx2
import pytest
from support.doubles.engine import Call, End
from support.people import people
from support.people.tokens import issue_credential
from support.stage.api_stage import AskAs, Asker
from support.stage.make import NOON, USER
from support.stage.stage import Stage

from backburner.actions.origin import Origin
from backburner.actions.work import jobs, mcp_clients
from backburner.actions.work.jobs import JobRequest
from backburner.core import transitions
from backburner.core.accounts import Caller, CredentialKind, Role, Scope
from backburner.core.conversation import Conversation
from backburner.core.ids import ConversationId, new_conversation_id
from backburner.core.question import Purpose
from backburner.core.schedule import Immediate
from backburner.core.transitions import Brief
from backburner.core.transitions.change import Verb, WorkChange, change_question

SENT = End({"complete": True, "message": "Sent."})
CLIENT = (Scope.READ, Scope.WRITE)


async def wanting(stage: Stage) -> Conversation:
    """Let work ask whether it may send something."""
    for _ in range(2):
        stage.engine.then(Call("send"), SENT)
    task = await stage.task()
    await stage.work()
    assert stage.question(task).purpose is Purpose.APPROVAL
    return task


async def test_a_token_that_writes_does_not_approve(ask_as: AskAs, stage: Stage) -> None:
    task = await wanting(stage)
    path = f"/api/questions/{stage.question(task).id}/answer"
    client = await ask_as(USER, *CLIENT)

    for answer in ("yes", "no", "always here"):
        refused = await client("POST", path, {"answer": answer})
        assert refused.status_code == 403
        assert "scope approve" in refused.json()["hint"]
    # Nor by saying it.
    await client.do("POST", f"/api/conversations/{task.id}/messages", {"content": "yes"})
    await stage.work()
    assert stage.question(task).purpose is Purpose.APPROVAL
    assert stage.tools.count("send") == 0


@pytest.mark.parametrize("scopes", [(), (*CLIENT, Scope.APPROVE)], ids=["owner", "with the scope"])
async def test_the_owner_and_a_token_with_the_scope_approve(
    ask_as: AskAs, stage: Stage, scopes: tuple[Scope, ...]
) -> None:
    task = await wanting(stage)
    asker = await ask_as(USER, *scopes)

    await asker.do("POST", f"/api/questions/{stage.question(task).id}/answer", {"answer": "yes"})
    await stage.work()

    assert stage.tools.count("send") == 1


async def test_a_token_that_writes_answers_what_an_agent_wants_to_know(
    ask_as: AskAs, stage: Stage
) -> None:
    question = {"type": "confirmation", "prompt": "Blue?"}
    stage.engine.then(End({"needs_input": True, "message": "Hm.", "question": question}))
    task = await stage.task()
    await stage.work()
    client = await ask_as(USER, *CLIENT)

    await client.do("POST", f"/api/questions/{stage.question(task).id}/answer", {"answer": True})


async def test_no_token_approves_work_that_it_handed_out(ask_as: AskAs, stage: Stage) -> None:
    client = await ask_as(USER, *CLIENT, Scope.APPROVE)
    place = await place_of(stage, client)
    stage.engine.then(Call("send"))
    (job,) = await jobs.start(
        stage.deps, Origin(USER, place), [JobRequest(description="Job", prompt="Send it.")]
    )
    await stage.work()
    (asked,) = (await client.get("/api/questions"))["items"]
    assert (asked["purpose"], asked["conversation_id"]) == ("approval", job.id)

    refused = await client("POST", f"/api/questions/{asked['id']}/answer", {"answer": "yes"})

    assert refused.status_code == 403
    assert "handed out itself" in refused.json()["detail"]
    owner = await ask_as(USER)
    await owner.do("POST", f"/api/questions/{asked['id']}/answer", {"answer": "yes"})


async def test_an_answer_keeps_by_which_credential_it_came(ask_as: AskAs, stage: Stage) -> None:
    owner, editor = await ask_as(USER), await ask_as(USER, *CLIENT, Scope.APPROVE)
    for answering in (owner, editor):
        stage.engine.then(Call("send", {"to": "Ann"}))
        await stage.task()
        await stage.work()
        (asked,) = (await owner.get("/api/questions"))["items"]
        await answering.do("POST", f"/api/questions/{asked['id']}/answer", {"answer": "no"})
        (own,) = [one for one in (await answering.get("/api/tokens"))["items"] if one["is_this"]]

        kept = {one["id"]: one for one in (await owner.get("/api/export"))["questions"]}

        assert kept[asked["id"]]["answered_by"] == f"token {own['id']} {own['name']}"


async def test_no_token_decides_what_it_handed_out(ask_as: AskAs, stage: Stage) -> None:
    client, owner = await ask_as(USER, *CLIENT, Scope.APPROVE), await ask_as(USER)
    place = await place_of(stage, client)
    proposed = transitions.propose(
        new_conversation_id(),
        USER,
        Brief(title="Idea", prompt="Do it.", schedule=Immediate(), parent_id=place),
        why="",
        now=NOON,
    )

    stage.database.run(lambda tx: tx.conversations.add(proposed))
    for verdict in ("approve", "reject"):
        path = f"/api/tasks/{proposed.conversation.id}/{verdict}"
        refused = await client("POST", path)
        assert (path, refused.status_code) == (path, 403), refused.text
        assert "handed out itself" in refused.json()["detail"]
    await owner.do("POST", f"/api/tasks/{proposed.conversation.id}/approve")


async def test_no_token_consents_to_a_change_of_work_that_it_handed_out(
    ask_as: AskAs, stage: Stage
) -> None:
    client, owner = await ask_as(USER, *CLIENT, Scope.APPROVE), await ask_as(USER)
    task = await stage.task(parent_id=await place_of(stage, client))
    # The change is asked for elsewhere.
    chat = await stage.chat()
    wanted = WorkChange(work_id=task.id, verb=Verb.RUN_NOW)
    asked = change_question(task, wanted, run_id=None, now=NOON, zone="UTC")
    stage.database.run(lambda tx: tx.conversations.save(transitions.ask_owner(chat, asked)))

    refused = await client("POST", f"/api/questions/{asked.id}/answer", {"answer": "yes"})

    assert refused.status_code == 403
    assert "handed out itself" in refused.json()["detail"]
    await owner.do("POST", f"/api/questions/{asked.id}/answer", {"answer": "yes"})


async def place_of(stage: Stage, client: Asker) -> ConversationId:
    """Give the conversation under which the client of a token works."""
    (own,) = [one for one in (await client.get("/api/tokens"))["items"] if one["is_this"]]
    caller = Caller(
        user=USER,
        role=Role.MEMBER,
        scopes=frozenset(CLIENT),
        credential=own["id"],
        kind=CredentialKind.TOKEN,
    )
    return (await mcp_clients.ensure_origin(stage.deps, caller)).conversation


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/api/me", {"allowances": {"day": "none"}}),
        ("PUT", "/api/me", {"discovery": True}),
        ("POST", "/api/erase", {"confirm": "erase everything of mine"}),
    ],
)
async def test_what_widens_or_ends_everything_needs_the_scope(
    ask_as: AskAs, method: str, path: str, body: dict[str, Any]
) -> None:
    client = await ask_as(USER, *CLIENT)

    assert (await client(method, path, body)).status_code == 403
    assert (await client("PUT", "/api/me", {"paused": True})).status_code == 200


async def test_no_token_makes_credentials(stage: Stage, client: httpx2.AsyncClient) -> None:
    user = await people.add(stage, role=Role.OPERATOR)
    token = await issue_credential(stage.deps, user, Scope, name="A program")
    for method, path, body in (
        ("POST", "/api/tokens", {"name": "child", "scopes": ["read"]}),
        ("POST", "/api/sign-in-links", None),
        ("PUT", "/api/password", {"current": people.PASSWORD, "password": "other words, more"}),
        ("POST", "/api/users", {"login": "eve"}),
        ("POST", f"/api/users/{user}/reset", None),
        ("POST", "/api/invitations", {}),
    ):
        headers = {"authorization": f"Bearer {token.secret}"}
        refused = await client.request(method, path, json=body, headers=headers)
        assert (path, refused.status_code) == (path, 403), refused.text
        assert "create credentials" in refused.json()["detail"]
