"""The engine for OpenAI-compatible servers in real runs: with the gate and a database."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from support.model_api import CallTool, GiveOutcome, ModelApi, Refuse, Say
from support.stage.stage import Stage

from backburner.bus.local import LocalBus
from backburner.core.run import RunStatus
from backburner.engine.openai import OpenAIEngine
from backburner.store.db import Database


@pytest.fixture
async def api() -> AsyncIterator[ModelApi]:
    async with ModelApi() as api:
        yield api
        assert api.complaints == []


@pytest.fixture
async def stage(api: ModelApi, database: Database) -> AsyncIterator[Stage]:
    engine: Any = OpenAIEngine(
        model="scripted", address=f"{api.address}/v1", stall=timedelta(seconds=20)
    )
    yield Stage(database, LocalBus(), engine)
    await engine.close()


async def test_a_chat_continues_its_session(stage: Stage, api: ModelApi) -> None:
    api.then(Say("The word is plum.", pieces=3))
    api.then(Say("Plum."))
    chat = await stage.chat()
    await stage.say(chat, "What is the word?")
    await stage.work()

    await stage.say(chat, "Again?")
    await stage.work()

    assert stage.said(chat)[-3:] == ["The word is plum.", "Again?", "Plum."]
    roles = [message["role"] for message in api.requests[1].body["messages"]]
    assert roles == ["system", "user", "assistant", "user"]


async def test_an_approved_call_is_made_once(stage: Stage, api: ModelApi) -> None:
    api.then(CallTool("look"), CallTool("send", {"to": "Ann"}))
    api.then(CallTool("send", {"to": "Ann"}))
    api.then(GiveOutcome({"complete": True, "message": "Sent."}))
    task = await stage.task()
    await stage.work()
    assert stage.tools.count("send") == 0
    assert "Ann" in stage.question(task).prompt

    await stage.answer(task, "yes")
    await stage.work()

    assert stage.said(task)[-1] == "Sent."
    assert stage.tools.count("look") == 1
    assert stage.tools.count("send") == 1
    assert stage.history(task)[0].status is RunStatus.SUCCESS
    assert (len(api.requests), api.left) == (3, 0)


async def test_an_invalid_outcome_is_corrected_once(stage: Stage, api: ModelApi) -> None:
    api.then(GiveOutcome({"complete": True, "continue": True}))
    api.then(GiveOutcome({"complete": True, "message": "Done."}))
    task = await stage.task()

    await stage.work()

    assert stage.history(task)[0].status is RunStatus.SUCCESS
    assert api.requests[1].holds("Exactly one of")


async def test_a_rejected_session_is_started_anew(stage: Stage, api: ModelApi) -> None:
    chat = await stage.chat()
    await stage.say(chat, "What is the word?")
    await stage.work()
    api.then(Refuse(400, message="the request exceeds the available context size"))

    await stage.say(chat, "Again?")
    await stage.work()

    assert stage.history(chat)[0].status is RunStatus.SUCCESS
    assert len(api.requests) == 3
    assert len(api.requests[2].body["messages"]) == 2
