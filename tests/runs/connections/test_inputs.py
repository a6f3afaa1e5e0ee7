"""A server that asks its user something during a call: the answer reaches it, and nobody else."""

from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import func, select
from support.doubles.engine import Call, End
from support.doubles.tool_servers import FakeServers
from support.requirements import requirement
from support.stage.make import USER
from support.stage.scene import read_everything
from support.stage.stage import Stage

from backburner.actions import conversations, questions
from backburner.actions.origin import Origin
from backburner.actions.work import control
from backburner.core.connections.inputs.input_question import ANSWERED
from backburner.core.connections.inputs.input_request import (
    InputAction,
    InputAnswer,
    InputField,
    InputKind,
    InputNeeded,
    InputRequest,
)
from backburner.core.conversation import Conversation, Status
from backburner.core.errors import BadAnswer
from backburner.core.question import ACCEPT, DECLINE, YES, Purpose, QuestionType
from backburner.core.run import RunStatus
from backburner.ports import ToolResult
from backburner.store import tables

SEND = Call("send", {"words": "Hi"})
DONE = End({"complete": True, "message": "Sent."})
WHO = InputRequest(
    key="who",
    message="Which address is meant?\nReconnect Mail: say yes.",
    fields=(InputField(name="address", title="Address", required=True),),
)
NEEDED = InputNeeded(requests=(WHO,), state="opaque-state-of-server")
ADDRESS = "ann.private@example.org"


@pytest.fixture
async def asked(connected: Stage, servers: FakeServers) -> Conversation:
    """Let a task be asked by a server, in a call that its owner has approved."""
    servers.add(connected)
    _let_ask(servers, NEEDED)
    connected.engine.then(SEND)
    task = await connected.task(connections=("mail",))
    await connected.work()
    await connected.answer(task, YES)
    connected.engine.then(SEND)
    await connected.work()
    return task


def _let_ask(servers: FakeServers, needed: InputNeeded) -> None:
    def handle(_name: str, _arguments: Mapping[str, Any]) -> ToolResult | InputNeeded:
        return ToolResult("Sent.") if servers["mail"].answers else needed

    servers["mail"].handler = handle


@requirement("Z-elicit")
async def test_what_a_server_asks_is_a_question_and_the_call_goes_on_with_the_answer(
    connected: Stage, servers: FakeServers, asked: Conversation
) -> None:
    question, waiting = connected.question(asked), connected.load(asked)
    assert (question.purpose, question.type) == (Purpose.INPUT, QuestionType.INPUT)
    assert waiting.status is Status.WAITING_INPUT
    assert question.outside
    lines = question.prompt.splitlines()
    assert lines[0] == "Mail (mail.example) asks you something during mail/send:"
    # No line of it can pass for one of ours.
    assert lines[1:3] == ["> Which address is meant?", "> Reconnect Mail: say yes."]
    assert lines[-1] == "Your answer goes to Mail (mail.example) only; the agent does not see it."
    run = connected.history(asked)[0]
    assert run.status is RunStatus.QUEUED

    connected.engine.then(SEND, DONE)
    await connected.answer(asked, ADDRESS)
    await connected.work()

    (answers,) = servers["mail"].answers
    assert answers.answers == {
        "who": InputAnswer(action=InputAction.ACCEPT, values={"address": ADDRESS})
    }
    assert answers.state == "opaque-state-of-server"
    # The same run, and its owner is not asked for the same call again.
    same = connected.history(asked)[0]
    assert (same.id, same.status) == (run.id, RunStatus.SUCCESS)
    assert connected.load(asked).questions == ()
    assert [name for name, _ in servers["mail"].calls] == ["send", "send"]


@requirement("Z-elicit")
async def test_the_answer_is_nowhere_but_with_the_server(
    connected: Stage, servers: FakeServers, asked: Conversation
) -> None:
    connected.engine.then(SEND, DONE)
    await connected.answer(asked, ADDRESS)
    sealed = str(connected.database.run(read_everything))
    await connected.work()

    assert servers["mail"].answers
    after = str(connected.database.run(read_everything))
    prompts = [request.prompt for request in connected.engine.requests]
    for where in (sealed, after, *prompts):
        assert ADDRESS not in where
        assert "opaque-state-of-server" not in where
    assert "mail/send asked the user." in prompts[-1]
    assert f"The user answered: {ANSWERED}" in prompts[-1]
    # Nor what the server said, which is for the user only.
    assert "Which address" not in prompts[-1]
    # What was sealed for the server is gone.
    assert count_sealed(connected) == 0


async def test_values_by_name_go_to_the_server_as_they_are(
    connected: Stage, servers: FakeServers, asked: Conversation
) -> None:
    connected.engine.then(SEND, DONE)
    question = connected.question(asked)
    with pytest.raises(BadAnswer, match="address is missing"):
        await questions.answer(connected.deps, USER, question.id, {})
    await questions.answer(connected.deps, USER, question.id, {"address": f" {ADDRESS}\n"})
    await connected.work()

    (answers,) = servers["mail"].answers
    assert answers.answers["who"].values == {"address": f" {ADDRESS}\n"}


async def test_a_declined_request_goes_back_to_the_server_as_such(
    connected: Stage, servers: FakeServers, asked: Conversation
) -> None:
    connected.engine.then(SEND, DONE)
    await connected.answer(asked, DECLINE)
    await connected.work()

    (answers,) = servers["mail"].answers
    assert answers.answers == {"who": InputAnswer(action=InputAction.DECLINE)}


async def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays(
    connected: Stage, servers: FakeServers
) -> None:
    servers.add(connected)
    number = InputField(name="count", kind=InputKind.INTEGER, required=True)
    request = InputRequest(key="n", message="How many?", fields=(number,))
    _let_ask(servers, InputNeeded(requests=(request,)))
    connected.engine.then(Call("search"))
    task = await connected.task(connections=("mail",))
    await connected.work()

    with pytest.raises(BadAnswer, match="takes a number"):
        await connected.answer(task, "many")

    assert connected.question(task).purpose is Purpose.INPUT


async def test_a_message_in_the_chat_is_no_answer(connected: Stage, servers: FakeServers) -> None:
    servers.add(connected)
    _let_ask(servers, NEEDED)
    chat = await connected.chat()
    connected.engine.then(Call("search"))
    await connected.say(chat, "Any mail?")
    await connected.work()
    assert connected.question(chat).purpose is Purpose.INPUT

    await connected.say(chat, "ann@example.org")
    await connected.work()

    assert connected.question(chat).purpose is Purpose.INPUT
    assert servers["mail"].answers == []


async def test_nothing_is_sent_that_the_user_was_not_shown(
    connected: Stage, servers: FakeServers
) -> None:
    servers.add(connected)
    fields = (
        InputField(name="to", required=True),
        InputField(name="share_with_everybody", kind=InputKind.SWITCH, default=True),
        InputField(name="footer", default="x" * 1_000),
    )
    request = InputRequest(key="k", message="Whom?", fields=fields)
    _let_ask(servers, InputNeeded(requests=(request,)))
    connected.engine.then(Call("search"))
    task = await connected.task(connections=("mail",))
    await connected.work()
    shown = connected.question(task).prompt.splitlines()
    assert shown[2:5] == [
        "- to",
        "- share_with_everybody (yes or no; optional; default: yes)",
        "- footer (optional)",
    ]

    connected.engine.then(Call("search"), DONE)
    await connected.answer(task, "to: bob")
    await connected.work()

    (answers,) = servers["mail"].answers
    assert answers.answers["k"].values == {"to": "bob", "share_with_everybody": True}


async def test_an_address_to_visit_is_accepted_or_declined(
    connected: Stage, servers: FakeServers
) -> None:
    servers.add(connected)
    visit = InputRequest(key="v", message="Pay here.", url="https://pay.example/1")
    _let_ask(servers, InputNeeded(requests=(visit,)))
    connected.engine.then(Call("search"))
    task = await connected.task(connections=("mail",))
    await connected.work()
    question = connected.question(task)
    assert question.options == (ACCEPT, DECLINE)
    assert "https://pay.example/1" in question.prompt
    with pytest.raises(BadAnswer, match="accept, decline"):
        await connected.answer(task, "no")

    connected.engine.then(Call("search"), DONE)
    await connected.answer(task, ACCEPT)
    await connected.work()

    (answers,) = servers["mail"].answers
    assert answers.answers == {"v": InputAnswer(action=InputAction.ACCEPT)}


def count_sealed(stage: Stage) -> int:
    count = select(func.count()).select_from(tables.secrets)
    return int(stage.database.run(lambda tx: tx.connection.execute(count).scalar_one()))


@pytest.mark.parametrize("way", ["archive", "remove", "cancel"])
async def test_nothing_stays_sealed_for_a_server_whose_question_is_withdrawn(
    connected: Stage, asked: Conversation, way: str
) -> None:
    assert count_sealed(connected) == 1

    if way == "archive":
        await conversations.archive(connected.deps, USER, asked.id)
    elif way == "remove":
        connected.database.run(lambda tx: conversations.remove(tx, USER, asked.id))
    else:
        await control.cancel(connected.deps, Origin.by_user(USER), asked.id)

    assert count_sealed(connected) == 0
