"""The relay to the model: who may use it, what it forwards, what is paid for, when it refuses."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from support.contracts.engine.harness import RecordingGate
from support.faults.limits import few_files_can_be_opened
from support.model_api import Cut, Garbage, ModelApi, Refuse, Say, Stall, Usage

from backburner.core.errors import EngineFailed
from backburner.engine.claude.call import ModelFailure
from backburner.engine.claude.relay import Line, Relay

REQUEST = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello!"}]}


@pytest.fixture
async def api() -> AsyncIterator[ModelApi]:
    async with ModelApi() as api:
        yield api


@pytest.fixture
async def relay(api: ModelApi) -> AsyncIterator[Relay]:
    relay = Relay(
        address=api.address, headers={"x-api-key": "the-key"}, stall=timedelta(seconds=0.5)
    )
    yield relay
    await relay.close()


@pytest.fixture
async def line(relay: Relay) -> Line:
    return await relay.open()


@pytest.fixture
def gate(line: Line) -> RecordingGate:
    gate = RecordingGate()
    line.begin(gate)
    return gate


@asynccontextmanager
async def asking(
    line: Line, path: str = "/v1/messages", *, method: str = "POST", **more: Any
) -> AsyncIterator[httpx2.Response]:
    body = {**REQUEST, "stream": True, **more}
    headers = {"x-api-key": "placeholder", "anthropic-beta": "one", "x-other": "secret"}
    async with httpx2.AsyncClient(timeout=10) as client:
        request = client.stream(method, line.address + path, json=body, headers=headers)
        async with request as answer:
            yield answer


async def ask(line: Line, path: str = "/v1/messages", **more: Any) -> tuple[int, str]:
    async with asking(line, path, **more) as answer:
        return answer.status_code, (await answer.aread()).decode()


async def test_the_relay_adds_the_key_and_forwards_only_known_headers(
    api: ModelApi, line: Line, gate: RecordingGate
) -> None:
    status, text = await ask(line, "/v1/messages?beta=true")

    assert (status, "Hello." in text) == (200, True)
    headers = api.requests[0].headers
    assert (headers["x-api-key"], headers["anthropic-beta"]) == ("the-key", "one")
    assert "x-other" not in headers
    assert len(gate.paid) == 1


async def test_a_line_with_a_key_of_its_own_sends_no_other(
    api: ModelApi,
    relay: Relay,
    line: Line,
    gate: RecordingGate,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    del gate
    line.own_headers = {"authorization": "Bearer own-key"}
    other = await relay.open()
    other.begin(RecordingGate())

    await ask(line)
    await ask(other)

    own, theirs = (request.headers for request in api.requests)
    assert own["authorization"] == "Bearer own-key"
    assert "x-api-key" not in own
    assert theirs["x-api-key"] == "the-key"
    assert "authorization" not in theirs
    assert "own-key" not in repr(line) + caplog.text


@pytest.mark.parametrize("streamed", [True, False])
async def test_every_call_of_the_model_is_paid_for(
    api: ModelApi, line: Line, gate: RecordingGate, *, streamed: bool
) -> None:
    used = Usage(input=5, output=7, cache_read=11, cache_write=13)
    api.then(Say("One."), used)

    await ask(line, stream=streamed)

    assert gate.paid == [("m", used)]


async def test_counting_tokens_is_not_paid_for(line: Line, gate: RecordingGate) -> None:
    status, text = await ask(line, "/v1/messages/count_tokens")

    assert (status, "input_tokens" in text) == (200, True)
    assert gate.paid == []


async def test_the_relay_needs_the_secret_and_serves_only_known_paths(
    api: ModelApi, relay: Relay, line: Line, gate: RecordingGate
) -> None:
    del gate
    stranger = Line(line.address[:-1] + "x")
    assert (await ask(stranger))[0] == 404
    assert (await ask(Line(line.address.rpartition("/")[0])))[0] == 404
    for path in ("", "/", "/v1/models", "/v1/messages/batches", "/api/oauth/profile"):
        assert (await ask(line, path))[0] == 404
    async with asking(line, method="GET") as answer:
        assert answer.status_code == 404
    relay.close_line(line)
    assert (await ask(line))[0] == 404
    assert api.received == []


async def test_a_line_without_a_gate_refuses_calls(api: ModelApi, line: Line) -> None:
    status, text = await ask(line)

    assert (status, "No further calls are allowed." in text) == (403, True)
    assert api.received == []


async def test_a_line_whose_allowance_is_used_up_refuses_calls(
    api: ModelApi, line: Line, gate: RecordingGate
) -> None:
    gate.has_allowance = False

    assert [(await ask(line))[0] for _ in range(2)] == [200, 403]
    assert line.spent
    assert len(api.requests) == 1

    line.begin(RecordingGate())
    assert (await ask(line))[0] == 200


async def test_a_call_whose_usage_cannot_be_stored_is_the_last(
    api: ModelApi, line: Line, gate: RecordingGate
) -> None:
    gate.fails = True

    assert [(await ask(line))[0] for _ in range(2)] == [200, 403]
    assert len(api.requests) == 1


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (
            [Refuse(429, retry_after="7", message="Slow down.")],
            ModelFailure(429, "Slow down.", timedelta(seconds=7)),
        ),
        ([Refuse(401, message="No such key.")], ModelFailure(401, "No such key.")),
        ([Refuse(500, retry_after="soon", message="Oh.")], ModelFailure(500, "Oh.")),
        ([Say("Well"), Cut()], ModelFailure(None, "The connection to the model was lost.")),
        ([Say("Well"), Stall()], ModelFailure(None, "The model stopped responding.")),
        ([Garbage()], ModelFailure(None, "The model's response cannot be read.")),
        ([Say("Well"), Garbage()], ModelFailure(None, "The model's response was cut off.")),
    ],
    ids=str,
)
async def test_after_a_failed_call_the_program_cannot_retry(
    api: ModelApi, line: Line, gate: RecordingGate, reply: list[Any], failure: ModelFailure
) -> None:
    del gate
    api.then(*reply)
    try:
        await ask(line)
    except httpx2.HTTPError:
        # A response that has started cannot become a refusal.
        assert reply[0] == Say("Well")

    assert line.failure == failure
    assert (await ask(line))[0] == 503
    assert len(api.requests) == 1

    line.begin(RecordingGate())
    assert (await ask(line))[0] == 200


async def test_an_unreachable_model_is_reported_to_the_program(gate: RecordingGate) -> None:
    relay = Relay(address="http://127.0.0.1:9", headers={}, stall=timedelta(seconds=1))
    line = await relay.open()
    line.begin(gate)

    status, text = await ask(line)
    await relay.close()

    assert (status, "The model cannot be reached." in text) == (502, True)


async def test_a_program_that_disconnects_ends_the_call_and_pays_for_its_output(
    api: ModelApi, line: Line, gate: RecordingGate
) -> None:
    api.then(Say("x" * 400), Usage(input=5, output=0), Stall())
    async with asking(line) as answer:
        async for _ in answer.aiter_bytes():
            break

    await asyncio.wait_for(api.requests[0].gone.wait(), 5)
    (_, usage) = gate.paid[0]
    assert usage.input == 5
    assert usage.output == pytest.approx(100, abs=1)


async def test_the_length_of_a_session_leaves_out_system_prompt_and_tools(
    api: ModelApi, line: Line, gate: RecordingGate
) -> None:
    del gate
    api.then(Say("One."), Usage(input=1000, output=10))
    await ask(line, system="s" * 9 * len(str(REQUEST)))

    assert 50 < line.context < 150


async def test_a_body_that_is_no_json_object_is_refused(
    api: ModelApi, line: Line, gate: RecordingGate
) -> None:
    del gate
    async with httpx2.AsyncClient() as client:
        for body in (b"", b"{no json", b"[]"):
            answer = await client.post(f"{line.address}/v1/messages", content=body)
            assert answer.status_code == 400
    assert api.received == []


def test_the_repr_of_a_relay_hides_the_key() -> None:
    relay = Relay(
        address="http://127.0.0.1:9", headers={"x-api-key": "the-key"}, stall=timedelta(1)
    )
    assert "the-key" not in repr(relay)


async def test_the_relay_of_a_test_run_cannot_reach_a_model_elsewhere() -> None:
    relay = Relay(address="https://models.example", headers={}, stall=timedelta(seconds=1))
    with pytest.raises(EngineFailed):
        await relay.open()


async def test_a_relay_without_free_file_handles_says_so_and_opens_later(relay: Relay) -> None:
    with few_files_can_be_opened(), pytest.raises(EngineFailed, match="Too many open files"):
        await relay.open()

    assert (await relay.open()).address.startswith("http://127.0.0.1:")
