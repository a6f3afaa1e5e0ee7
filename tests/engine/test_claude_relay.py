"""The way to the model: who may use it, what is passed on, what is paid for, when it refuses."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from support.contracts.engine.trial import TrialGate
from support.model_api import Cut, Garbage, ModelApi, Refuse, Say, Stall, Usage

from backburner.core.errors import EngineFailed
from backburner.engine.claude.call import Trouble
from backburner.engine.claude.relay import Line, Relay

ASKED = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello!"}]}


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
def gate(line: Line) -> TrialGate:
    gate = TrialGate()
    line.begin(gate)
    return gate


@asynccontextmanager
async def asking(
    line: Line, path: str = "/v1/messages", *, method: str = "POST", **more: Any
) -> AsyncIterator[httpx2.Response]:
    body = {**ASKED, "stream": True, **more}
    headers = {"x-api-key": "placeholder", "anthropic-beta": "one", "x-other": "secret"}
    async with httpx2.AsyncClient(timeout=10) as client:
        request = client.stream(method, line.address + path, json=body, headers=headers)
        async with request as answer:
            yield answer


async def ask(line: Line, path: str = "/v1/messages", **more: Any) -> tuple[int, str]:
    async with asking(line, path, **more) as answer:
        return answer.status_code, (await answer.aread()).decode()


async def test_the_model_gets_the_key_and_no_more_of_the_headers_than_it_needs(
    api: ModelApi, line: Line, gate: TrialGate
) -> None:
    status, text = await ask(line, "/v1/messages?beta=true")

    assert (status, "Hello." in text) == (200, True)
    headers = api.requests[0].headers
    assert (headers["x-api-key"], headers["anthropic-beta"]) == ("the-key", "one")
    assert "x-other" not in headers
    assert len(gate.paid) == 1


@pytest.mark.parametrize("streamed", [True, False])
async def test_every_call_is_paid_for(
    api: ModelApi, line: Line, gate: TrialGate, *, streamed: bool
) -> None:
    used = Usage(input=5, output=7, cache_read=11, cache_write=13)
    api.then(Say("One."), used)

    await ask(line, stream=streamed)

    assert gate.paid == [("m", used)]


async def test_what_only_counts_is_not_paid_for(line: Line, gate: TrialGate) -> None:
    status, text = await ask(line, "/v1/messages/count_tokens")

    assert (status, "input_tokens" in text) == (200, True)
    assert gate.paid == []


async def test_nobody_gets_through_without_the_secret_or_to_anything_else(
    api: ModelApi, relay: Relay, line: Line, gate: TrialGate
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
    assert api.heard == []


async def test_a_line_that_nobody_pays_for_is_of_no_use(api: ModelApi, line: Line) -> None:
    status, text = await ask(line)

    assert (status, "Nothing more may be asked." in text) == (403, True)
    assert api.heard == []


async def test_once_all_is_spent_the_model_is_not_asked_any_more(
    api: ModelApi, line: Line, gate: TrialGate
) -> None:
    gate.has_money = False

    assert [(await ask(line))[0] for _ in range(2)] == [200, 403]
    assert line.spent
    assert len(api.requests) == 1

    line.begin(TrialGate())
    assert (await ask(line))[0] == 200


async def test_a_call_that_cannot_be_written_down_is_the_last(
    api: ModelApi, line: Line, gate: TrialGate
) -> None:
    gate.breaks = True

    assert [(await ask(line))[0] for _ in range(2)] == [200, 403]
    assert len(api.requests) == 1


@pytest.mark.parametrize(
    ("reply", "trouble"),
    [
        (
            [Refuse(429, retry_after="7", message="Slow down.")],
            Trouble(429, "Slow down.", timedelta(seconds=7)),
        ),
        ([Refuse(401, message="No such key.")], Trouble(401, "No such key.")),
        ([Refuse(500, retry_after="soon", message="Oh.")], Trouble(500, "Oh.")),
        ([Say("Well"), Cut()], Trouble(None, "The connection to the model was lost.")),
        ([Say("Well"), Stall()], Trouble(None, "The model has stopped answering.")),
        ([Garbage()], Trouble(None, "The model's answer cannot be understood.")),
        ([Say("Well"), Garbage()], Trouble(None, "The model's answer broke off.")),
    ],
    ids=str,
)
async def test_after_trouble_the_program_does_not_get_to_try_again(
    api: ModelApi, line: Line, gate: TrialGate, reply: list[Any], trouble: Trouble
) -> None:
    del gate
    api.then(*reply)
    try:
        await ask(line)
    except httpx2.HTTPError:
        # What was streamed already cannot be turned into a refusal.
        assert reply[0] == Say("Well")

    assert line.trouble == trouble
    assert (await ask(line))[0] == 503
    assert len(api.requests) == 1

    line.begin(TrialGate())
    assert (await ask(line))[0] == 200


async def test_a_model_that_is_not_there_is_told_of(gate: TrialGate) -> None:
    relay = Relay(address="http://127.0.0.1:9", headers={}, stall=timedelta(seconds=1))
    line = await relay.open()
    line.begin(gate)

    status, text = await ask(line)
    await relay.close()

    assert (status, "The model cannot be reached." in text) == (502, True)


async def test_a_program_that_leaves_takes_the_call_with_it_and_pays_for_what_was_said(
    api: ModelApi, line: Line, gate: TrialGate
) -> None:
    api.then(Say("x" * 400), Usage(input=5, output=0), Stall())
    async with asking(line) as answer:
        async for _ in answer.aiter_bytes():
            break

    await asyncio.wait_for(api.requests[0].gone.wait(), 5)
    (_, usage) = gate.paid[0]
    assert usage.input == 5
    assert usage.output == pytest.approx(100, abs=1)


async def test_how_long_a_session_is_leaves_out_system_prompt_and_tools(
    api: ModelApi, line: Line, gate: TrialGate
) -> None:
    del gate
    api.then(Say("One."), Usage(input=1000, output=10))
    await ask(line, system="s" * 9 * len(str(ASKED)))

    assert 50 < line.context < 150


async def test_what_is_no_request_is_refused(api: ModelApi, line: Line, gate: TrialGate) -> None:
    del gate
    async with httpx2.AsyncClient() as client:
        for body in (b"", b"{no json", b"[]"):
            answer = await client.post(f"{line.address}/v1/messages", content=body)
            assert answer.status_code == 400
    assert api.heard == []


def test_the_key_does_not_show() -> None:
    relay = Relay(
        address="http://127.0.0.1:9", headers={"x-api-key": "the-key"}, stall=timedelta(1)
    )
    assert "the-key" not in repr(relay)


async def test_while_tests_run_no_other_machine_is_asked() -> None:
    relay = Relay(address="https://models.example", headers={}, stall=timedelta(seconds=1))
    with pytest.raises(EngineFailed):
        await relay.open()
