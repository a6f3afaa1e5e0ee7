"""The engine for OpenAI-compatible servers: the engine contract, and its own behaviour."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from pydantic_ai.exceptions import ModelAPIError
from support.contracts.engine import OF_ANY_ENGINE, WITH_MODEL, Promise
from support.contracts.engine.harness import STALL_LIMIT, EngineHarness, Shared
from support.model_api import CallTool, Cut, Garbage, GiveOutcome, ModelApi, Refuse, Say, Step

from backburner.core.errors import EngineFailed, ModelUnavailable, SessionGone
from backburner.core.prompt import quote_outside
from backburner.engine.openai import OpenAIEngine, failures
from backburner.engine.openai.history import INTERRUPTED
from backburner.engine.openai.turn import NOT_MADE, TOO_EARLY
from backburner.engine.persona import SYSTEM_PROMPT

KEY = "sk-very-secret"
PROMISES = OF_ANY_ENGINE | WITH_MODEL


@dataclass
class Subject:
    api: ModelApi
    model: str = "scripted"
    key: str = KEY
    sees_images: bool = True
    made: list[OpenAIEngine] = field(default_factory=list)

    def engine(self, *, stall: timedelta = STALL_LIMIT) -> OpenAIEngine:
        engine = OpenAIEngine(
            model=self.model,
            address=f"{self.api.address}/v1",
            key=self.key,
            sees_images=self.sees_images,
            stall=stall,
        )
        self.made.append(engine)
        return engine


@pytest.fixture
async def subject() -> AsyncIterator[Subject]:
    async with ModelApi() as api:
        subject = Subject(api)
        yield subject
        for engine in subject.made:
            await engine.close()
        assert api.complaints == []


@pytest.fixture
def harness(subject: Subject) -> EngineHarness:
    return EngineHarness(subject)


@pytest.fixture
def api(subject: Subject) -> ModelApi:
    return subject.api


@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
async def test_the_openai_engine_promises_that(promise: Promise, subject: Subject) -> None:
    await promise(subject)


async def test_every_request_has_the_system_prompt(harness: EngineHarness, api: ModelApi) -> None:
    await harness.turn("One.")
    await harness.turn("Two.")

    for request in api.requests:
        first, *others = request.body["messages"]
        assert first == {"role": "system", "content": SYSTEM_PROMPT}
        assert not any(message["role"] == "system" for message in others)
    assert SYSTEM_PROMPT not in "".join(harness.memory)


@pytest.mark.parametrize("key", [KEY, "sk-of-a-user"])
async def test_the_key_is_sent_to_the_server_and_appears_nowhere_else(
    harness: EngineHarness, api: ModelApi, caplog: pytest.LogCaptureFixture, key: str
) -> None:
    harness.own_key = None if key == KEY else key
    caplog.set_level(logging.DEBUG)
    messages = list[str]()
    for status in (400, 401, 403, 404, 429, 500):
        api.then(Refuse(status, message=f"I do not like {key}."))
        with pytest.raises(EngineFailed) as failed:
            await harness.turn()
        messages += [str(failed.value), repr(failed.value), repr(failed.value.__cause__)]

    assert all(result.headers["authorization"] == f"Bearer {key}" for result in api.received)
    assert key not in "".join(messages)
    assert key not in caplog.text
    assert key not in "".join(harness.memory)


async def test_a_server_without_a_key_can_be_used(subject: Subject) -> None:
    subject.key = ""

    assert (await EngineHarness(subject).turn()).end.text == "Hello."


async def test_tokens_that_the_server_does_not_report_are_estimated(
    harness: EngineHarness, api: ModelApi
) -> None:
    api.reports_usage = False
    api.then(Say("word " * 400))

    await harness.turn("word " * 4000)

    ((_, used),) = harness.gate.paid
    assert 5_000 < used.input < 6_000
    assert 500 <= used.output < 520
    assert harness.tokens is not None
    assert 5_500 <= harness.tokens < 5_600


async def test_the_length_of_a_session_leaves_out_system_prompt_and_tools(
    harness: EngineHarness, api: ModelApi
) -> None:
    api.reports_usage = False

    await harness.turn("Hello!", ends_with_outcome=True)

    ((_, used),) = harness.gate.paid
    assert harness.tokens is not None
    assert used.input > 500
    assert harness.tokens < 50


@pytest.mark.parametrize(
    ("status", "words"), [(402, "balance"), (403, "key"), (404, "'scripted'"), (422, "no good")]
)
async def test_an_error_that_needs_a_change_of_settings_is_permanent(
    harness: EngineHarness, api: ModelApi, status: int, words: str
) -> None:
    api.then(Refuse(status, message="This is no good."))

    with pytest.raises(EngineFailed, match=words) as failed:
        await harness.turn()

    assert failed.value.permanent


@pytest.mark.parametrize("fault", [Refuse(429), Refuse(500), Refuse(503), Cut(), Garbage()])
async def test_the_engine_does_not_retry_by_itself(
    harness: EngineHarness, api: ModelApi, fault: Step
) -> None:
    api.then(fault)

    with pytest.raises(EngineFailed):
        await harness.turn()

    assert len(api.requests) == 1


async def test_an_unreachable_server_is_a_temporary_failure() -> None:
    async with ModelApi() as api:
        gone = f"{api.address}/v1"
    engine = OpenAIEngine(model="m", address=gone, stall=STALL_LIMIT)

    with pytest.raises(EngineFailed, match="cannot be reached") as failed:
        await EngineHarness(Shared(engine)).turn()

    assert not failed.value.permanent
    await engine.close()


async def test_a_session_that_the_server_rejects_is_gone(
    harness: EngineHarness, api: ModelApi
) -> None:
    await harness.turn()
    api.then(Refuse(400, message="The context is too long."))

    with pytest.raises(SessionGone):
        await harness.turn()


async def test_a_session_is_kept_once_a_tool_was_called(
    harness: EngineHarness, api: ModelApi
) -> None:
    await harness.turn()
    api.then(CallTool("send"))
    api.then(Refuse(400, message="The context is too long."))

    with pytest.raises(EngineFailed) as failed:
        await harness.turn()

    assert not isinstance(failed.value, SessionGone)


async def test_a_response_without_a_finish_reason_is_a_failure(
    harness: EngineHarness, api: ModelApi
) -> None:
    api.then(Say("Half a sent"), Garbage(b"\n\n"))

    with pytest.raises(EngineFailed) as failed:
        await harness.turn()

    assert not failed.value.permanent


async def test_an_empty_response_is_a_failure(harness: EngineHarness, api: ModelApi) -> None:
    api.then(Say(""))

    with pytest.raises(EngineFailed, match="no answer") as failed:
        await harness.turn()

    assert not failed.value.permanent
    assert harness.memory == []


async def test_an_empty_response_after_a_call_ends_the_turn(
    harness: EngineHarness, api: ModelApi
) -> None:
    api.then(Say("I shall look."), CallTool("look"))
    api.then(Say(""))

    result = await harness.turn()

    assert result.end.text == "I shall look."
    assert (await harness.turn()).ended


async def test_a_model_that_runs_in_circles_is_stopped(subject: Subject) -> None:
    subject.api.otherwise = lambda _: [CallTool("look")]
    engine = OpenAIEngine(
        model="m", address=f"{subject.api.address}/v1", stall=STALL_LIMIT, max_steps=5
    )
    harness = EngineHarness(Shared(engine))

    with pytest.raises(EngineFailed, match="within 5 requests"):
        await harness.turn()

    assert len(subject.api.requests) == 5
    await engine.close()


@pytest.mark.parametrize(
    "text", ['{"complete": true}', '```json\n{"complete": true}\n```', ' {"complete": true}\n']
)
async def test_an_outcome_written_as_text_is_accepted(
    harness: EngineHarness, api: ModelApi, text: str
) -> None:
    api.then(Say(text))

    result = await harness.turn(ends_with_outcome=True)

    assert result.end.outcome == {"complete": True}


async def test_plain_text_is_no_outcome(harness: EngineHarness, api: ModelApi) -> None:
    api.then(Say("I am done."))

    result = await harness.turn(ends_with_outcome=True)

    assert result.end.outcome is None
    assert result.end.text == "I am done."


async def test_an_outcome_beside_other_calls_is_refused(
    harness: EngineHarness, api: ModelApi
) -> None:
    api.then(CallTool("look"), GiveOutcome({"complete": True, "message": "Guessed."}))
    api.then(GiveOutcome({"complete": True, "message": "Seen."}))

    result = await harness.turn(ends_with_outcome=True)

    assert result.end.outcome == {"complete": True, "message": "Seen."}
    assert api.requests[1].holds(TOO_EARLY)
    assert api.requests[1].holds("look is done.")


async def test_an_outcome_that_is_no_json_is_passed_on_as_written(
    harness: EngineHarness, api: ModelApi
) -> None:
    api.then(CallTool("final_result", '{"complete": tru'))

    result = await harness.turn(ends_with_outcome=True)

    assert result.end.outcome == '{"complete": tru'
    assert (await harness.turn(ends_with_outcome=True)).end.outcome


async def test_an_outcome_in_a_chat_is_an_unknown_tool(
    harness: EngineHarness, api: ModelApi
) -> None:
    api.then(CallTool("final_result", {"complete": True}))

    result = await harness.turn()

    assert result.end.text == "Hello."
    assert api.requests[1].holds("Unknown tool: 'final_result'.")


async def test_arguments_that_are_no_object_are_reported_to_the_model(
    harness: EngineHarness, api: ModelApi
) -> None:
    api.then(CallTool("send", '["not", "an", "object"]'))

    result = await harness.turn()

    assert harness.gate.calls == []
    assert api.requests[1].holds("not a JSON object")
    assert result.ended


async def test_thoughts_are_neither_shown_nor_remembered(
    harness: EngineHarness, api: ModelApi
) -> None:
    api.then(Say("<think>"), Say("They greet me.", pieces=3), Say("</think>"), Say("Good day."))

    result = await harness.turn()

    assert result.end.text == "Good day."
    assert "They greet me." not in "".join(harness.memory)


async def test_a_call_that_was_cut_off_is_marked_as_interrupted(
    harness: EngineHarness, api: ModelApi
) -> None:
    api.then(CallTool("look"), CallTool("slow"), CallTool("send"))
    turn = asyncio.create_task(harness.turn())
    await asyncio.wait_for(harness.tools.started["slow"].wait(), 10)
    turn.cancel()
    with suppress(asyncio.CancelledError):
        await turn

    await harness.turn("Go on.")

    roles = [message["role"] for message in api.requests[1].body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "tool", "user"]
    look, slow, send = (message["content"] for message in api.requests[1].body["messages"][3:6])
    assert look == quote_outside("look", "look is done.")
    assert INTERRUPTED in slow
    assert INTERRUPTED in send


async def test_calls_beyond_the_allowance_are_marked_as_not_made(
    harness: EngineHarness, api: ModelApi
) -> None:
    api.then(CallTool("send"))
    harness.gate.has_allowance = False
    await harness.turn()
    harness.gate.has_allowance = True

    await harness.turn("Go on.")

    assert harness.tools.calls == []
    assert api.requests[1].holds(NOT_MADE)


async def test_a_session_with_a_result_without_its_call_is_gone(
    harness: EngineHarness, api: ModelApi
) -> None:
    api.then(CallTool("look"))
    await harness.turn()
    harness.memory = harness.memory[2:]

    with pytest.raises(SessionGone):
        await harness.turn()


async def test_arguments_and_results_are_passed_on_unchanged(
    harness: EngineHarness, api: ModelApi
) -> None:
    async def answer(_: object) -> str:
        return 'ö "quoted" \x00 \ud83c'.encode(errors="replace").decode()

    harness.tools.handlers["look"] = answer
    api.then(CallTool("look", {"at": 'ö "x" \\ \n'}))

    await harness.turn()

    assert harness.gate.called == [("look", {"at": 'ö "x" \\ \n'})]
    assert api.requests[1].holds('ö "quoted"')


def test_the_library_of_the_engine_is_imported_only_with_it() -> None:
    code = "import sys, backburner.app, backburner.engine; print('pydantic_ai' in sys.modules)"

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.strip() == "False"


def test_trouble_of_a_server_is_explained_without_its_words() -> None:
    """It is told to users whose request it was not."""
    quoting = ModelAPIError("m", "Cannot parse {'note': 'My salary'}.", in_stream=True)

    explained = failures.explain(quoting, model="m", server="http://gpu", key="")

    assert isinstance(explained, ModelUnavailable)
    assert str(explained) == "The model at http://gpu failed."
