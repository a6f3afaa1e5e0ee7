"""Ends that come from the gate or from whoever asked, and what is known of them afterwards."""

import asyncio

from backburner.ports import TextDelta, ToolResult
from support.contracts.engine.trial import SOON, ModelSubject, Trial, ends_soon
from support.model_api import CallTool, Delay, GiveOutcome, Say, Stall

ASKED = ToolResult("The owner has been asked. End here.", failed=True, stop=True)


async def a_call_may_be_the_last_thing_done(subject: ModelSubject) -> None:
    subject.api.then(Say("Sending."), CallTool("send"))
    trial = Trial(subject)
    trial.gate.stops = True

    heard = await trial.turn()

    assert heard.ended is None
    assert trial.tools.count("send") == 1
    assert len(subject.api.requests) == 1


async def what_was_done_last_is_known_in_the_next_turn(subject: ModelSubject) -> None:
    subject.api.then(Say("Sending."), CallTool("send", {"to": "Ann"}))
    trial = Trial(subject)
    trial.gate.stops = True
    await trial.turn("Send it to Ann.")
    trial.gate.stops = False

    heard = await trial.turn("Go on.")

    request = subject.api.requests[1]
    assert all(map(request.holds, ("Send it to Ann.", "Ann", "send is done.", "Go on.")))
    assert heard.ended
    assert trial.tools.count("send") == 1


async def all_calls_of_a_message_reach_the_gate_though_the_first_ends_the_turn(
    subject: ModelSubject,
) -> None:
    subject.api.then(CallTool("send", {"to": "a"}), CallTool("send", {"to": "b"}))
    trial = Trial(subject)
    trial.gate.answers += [ASKED, ASKED]

    heard = await trial.turn()

    assert [arguments["to"] for _, arguments in trial.gate.called] == ["a", "b"]
    assert heard.ended is None
    assert len(subject.api.requests) == 1
    assert (await trial.turn()).ended


async def a_call_that_was_not_made_is_made_once_when_it_may_be(subject: ModelSubject) -> None:
    subject.api.then(CallTool("send", {"to": "a"}))
    subject.api.then(CallTool("send", {"to": "a"}))
    subject.api.then(GiveOutcome({"complete": True}))
    trial = Trial(subject)
    trial.gate.answers.append(ASKED)
    asked = await trial.turn("Send it.", ends_with_outcome=True)
    assert asked.ended is None
    assert trial.tools.count("send") == 0

    heard = await trial.turn("The owner said yes.", ends_with_outcome=True)

    assert trial.tools.calls == [("send", {"to": "a"})]
    assert subject.api.requests[1].holds("The owner has been asked.")
    assert heard.end.outcome == {"complete": True}


async def a_chat_may_come_between_a_call_and_its_consent(subject: ModelSubject) -> None:
    subject.api.then(CallTool("send", {"to": "a"}))
    subject.api.then(Say("I wait for you."))
    subject.api.then(CallTool("send", {"to": "a"}))
    trial = Trial(subject)
    trial.gate.answers.append(ASKED)
    await trial.turn("Send it.")

    between = await trial.turn("How is it going?")
    after = await trial.turn("The owner said yes.")

    assert between.end.text == "I wait for you."
    assert trial.tools.count("send") == 1
    assert after.ended


async def a_turn_that_is_cancelled_while_the_model_talks_ends_soon(subject: ModelSubject) -> None:
    subject.api.then(Say("Half a"), Stall())
    trial = Trial(subject)
    turn = asyncio.create_task(_listen(trial, heard := asyncio.Event()))
    await asyncio.wait_for(heard.wait(), SOON)

    turn.cancel()

    await ends_soon(turn)
    assert turn.cancelled()
    await asyncio.wait_for(subject.api.requests[0].gone.wait(), SOON)
    await _can_be_used_again(trial, subject)


async def a_turn_that_runs_out_of_time_ends_soon(subject: ModelSubject) -> None:
    subject.api.then(Say("Half a"), Stall())
    trial = Trial(subject)
    heard, timed_out = asyncio.Event(), False
    try:
        async with asyncio.timeout(None) as limit:
            turn = asyncio.create_task(_reschedule(limit, heard))
            await _listen(trial, heard)
    except TimeoutError:
        timed_out = True
    await turn

    assert timed_out
    await asyncio.wait_for(subject.api.requests[0].gone.wait(), SOON)
    await _can_be_used_again(trial, subject)


async def a_turn_that_is_left_while_the_model_talks_ends_soon(subject: ModelSubject) -> None:
    subject.api.then(Say("Half a"), Stall())
    trial = Trial(subject)
    async with asyncio.timeout(SOON), trial.events("Talk.") as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break

    await asyncio.wait_for(subject.api.requests[0].gone.wait(), SOON)
    await _can_be_used_again(trial, subject)


async def a_turn_that_is_cancelled_before_the_model_says_anything_ends_soon(
    subject: ModelSubject,
) -> None:
    subject.api.then(Delay(asyncio.Event()))
    trial = Trial(subject)
    turn = asyncio.create_task(trial.turn("Talk."))
    await subject.api.wait_for_requests(1)

    turn.cancel()

    await ends_soon(turn)
    assert turn.cancelled()
    await asyncio.wait_for(subject.api.requests[0].gone.wait(), SOON)
    await _can_be_used_again(trial, subject)


async def a_turn_that_is_cancelled_in_a_call_leaves_a_session_that_works(
    subject: ModelSubject,
) -> None:
    subject.api.then(Say("Wait."), CallTool("look"))
    subject.api.then(CallTool("look"), CallTool("slow"))
    trial = Trial(subject)
    turn = asyncio.create_task(trial.turn("Talk."))
    await asyncio.wait_for(trial.tools.started["slow"].wait(), SOON)

    turn.cancel()

    await ends_soon(turn)
    assert turn.cancelled()
    await _can_be_used_again(trial, subject)


async def _listen(trial: Trial, heard: asyncio.Event) -> None:
    async with trial.events("Talk.") as events:
        async for event in events:
            if isinstance(event, TextDelta):
                heard.set()


async def _reschedule(limit: asyncio.Timeout, heard: asyncio.Event) -> None:
    await heard.wait()
    limit.reschedule(asyncio.get_running_loop().time())


async def _can_be_used_again(trial: Trial, subject: ModelSubject) -> None:
    before = len(subject.api.requests)

    heard = await trial.turn("Go on.")

    assert heard.ended
    assert len(subject.api.requests) == before + 1
    assert subject.api.complaints == []
