"""Turns ended by the gate or by the caller, and what the session knows of them afterwards."""

import asyncio

from backburner.ports import TextDelta, ToolResult
from support.contracts.engine.harness import END_SECONDS, EngineHarness, ModelSubject, ends_soon
from support.model_api import CallTool, Delay, GiveOutcome, Say, Stall

ASKED = ToolResult("The owner has been asked. End here.", failed=True, stop=True)


async def a_call_can_end_the_turn_and_is_known_in_the_next(subject: ModelSubject) -> None:
    subject.api.then(Say("Sending."), CallTool("send", {"to": "Ann"}))
    harness = EngineHarness(subject)
    harness.gate.stops = True
    stopped = await harness.turn("Send it to Ann.")
    assert stopped.ended is None
    assert harness.tools.count("send") == 1
    assert len(subject.api.requests) == 1
    harness.gate.stops = False

    result = await harness.turn("Go on.")

    request = subject.api.requests[1]
    assert all(map(request.holds, ("Send it to Ann.", "Ann", "send is done.", "Go on.")))
    assert result.ended
    assert harness.tools.count("send") == 1


async def all_calls_of_a_message_reach_the_gate_though_the_first_ends_the_turn(
    subject: ModelSubject,
) -> None:
    subject.api.then(CallTool("send", {"to": "a"}), CallTool("send", {"to": "b"}))
    harness = EngineHarness(subject)
    harness.gate.answers += [ASKED, ASKED]

    result = await harness.turn()

    assert [arguments["to"] for _, arguments in harness.gate.called] == ["a", "b"]
    assert result.ended is None
    assert len(subject.api.requests) == 1
    assert (await harness.turn()).ended


async def a_call_that_needed_approval_is_made_once_after_it(subject: ModelSubject) -> None:
    subject.api.then(CallTool("send", {"to": "a"}))
    subject.api.then(CallTool("send", {"to": "a"}))
    subject.api.then(GiveOutcome({"complete": True}))
    harness = EngineHarness(subject)
    harness.gate.answers.append(ASKED)
    asked = await harness.turn("Send it.", ends_with_outcome=True)
    assert asked.ended is None
    assert harness.tools.count("send") == 0

    result = await harness.turn("The owner texts yes.", ends_with_outcome=True)

    assert harness.tools.calls == [("send", {"to": "a"})]
    assert subject.api.requests[1].holds("The owner has been asked.")
    assert result.end.outcome == {"complete": True}


async def a_chat_may_come_between_a_call_and_its_approval(subject: ModelSubject) -> None:
    subject.api.then(CallTool("send", {"to": "a"}))
    subject.api.then(Say("I wait for you."))
    subject.api.then(CallTool("send", {"to": "a"}))
    harness = EngineHarness(subject)
    harness.gate.answers.append(ASKED)
    await harness.turn("Send it.")

    between = await harness.turn("How is it going?")
    after = await harness.turn("The owner texts yes.")

    assert between.end.text == "I wait for you."
    assert harness.tools.count("send") == 1
    assert after.ended


async def a_turn_cancelled_during_a_response_ends_soon(subject: ModelSubject) -> None:
    subject.api.then(Say("Half a"), Stall())
    harness = EngineHarness(subject)
    turn = asyncio.create_task(_listen(harness, result := asyncio.Event()))
    await asyncio.wait_for(result.wait(), END_SECONDS)

    turn.cancel()

    await ends_soon(turn)
    assert turn.cancelled()
    await asyncio.wait_for(subject.api.requests[0].gone.wait(), END_SECONDS)
    await _can_be_used_again(harness, subject)


async def a_turn_that_times_out_ends_soon(subject: ModelSubject) -> None:
    subject.api.then(Say("Half a"), Stall())
    harness = EngineHarness(subject)
    result, timed_out = asyncio.Event(), False
    try:
        async with asyncio.timeout(None) as limit:
            turn = asyncio.create_task(_reschedule(limit, result))
            await _listen(harness, result)
    except TimeoutError:
        timed_out = True
    await turn

    assert timed_out
    await asyncio.wait_for(subject.api.requests[0].gone.wait(), END_SECONDS)
    await _can_be_used_again(harness, subject)


async def a_turn_left_during_a_response_ends_soon(subject: ModelSubject) -> None:
    subject.api.then(Say("Half a"), Stall())
    harness = EngineHarness(subject)
    async with asyncio.timeout(END_SECONDS), harness.events("Talk.") as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break

    await asyncio.wait_for(subject.api.requests[0].gone.wait(), END_SECONDS)
    await _can_be_used_again(harness, subject)


async def a_turn_cancelled_before_a_response_ends_soon(
    subject: ModelSubject,
) -> None:
    subject.api.then(Delay(asyncio.Event()))
    harness = EngineHarness(subject)
    turn = asyncio.create_task(harness.turn("Talk."))
    await subject.api.wait_for_requests(1)

    turn.cancel()

    await ends_soon(turn)
    assert turn.cancelled()
    await asyncio.wait_for(subject.api.requests[0].gone.wait(), END_SECONDS)
    await _can_be_used_again(harness, subject)


async def a_turn_cancelled_during_a_call_leaves_a_usable_session(
    subject: ModelSubject,
) -> None:
    subject.api.then(Say("Wait."), CallTool("look"))
    subject.api.then(CallTool("look"), CallTool("slow"))
    harness = EngineHarness(subject)
    turn = asyncio.create_task(harness.turn("Talk."))
    await asyncio.wait_for(harness.tools.started["slow"].wait(), END_SECONDS)

    turn.cancel()

    await ends_soon(turn)
    assert turn.cancelled()
    await _can_be_used_again(harness, subject)


async def _listen(harness: EngineHarness, result: asyncio.Event) -> None:
    async with harness.events("Talk.") as events:
        async for event in events:
            if isinstance(event, TextDelta):
                result.set()


async def _reschedule(limit: asyncio.Timeout, result: asyncio.Event) -> None:
    await result.wait()
    limit.reschedule(asyncio.get_running_loop().time())


async def _can_be_used_again(harness: EngineHarness, subject: ModelSubject) -> None:
    before = len(subject.api.requests)

    result = await harness.turn("Go on.")

    assert result.ended
    assert len(subject.api.requests) == before + 1
    assert subject.api.complaints == []
