"""Promises of every engine, with or without a model."""

import asyncio

from backburner.core.outcome import parse_outcome
from backburner.ports import TextDelta, TurnEnded
from support.contracts.engine.harness import EngineHarness, Shared, Subject, ends_soon


async def a_turn_streams_the_text_that_it_ends_with(subject: Subject) -> None:
    result = await EngineHarness(subject).turn("Hello!")

    assert result.end.text
    assert "".join(result.texts) == result.end.text
    assert result.end.outcome is None


async def a_turn_in_the_background_ends_with_an_outcome(subject: Subject) -> None:
    result = await EngineHarness(subject).turn("Do the work.", ends_with_outcome=True)

    end = result.end
    parse_outcome(end.text if end.outcome is None else end.outcome)


async def a_turn_that_is_left_early_ends(subject: Subject) -> None:
    harness = EngineHarness(subject)
    async with asyncio.timeout(30), harness.events("Hello!") as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break

    assert (await harness.turn("Hello again!")).ended


async def a_turn_that_is_cancelled_at_once_ends(subject: Subject) -> None:
    harness = EngineHarness(subject)
    turn = asyncio.create_task(harness.turn("Hello!"))
    await asyncio.sleep(0)
    turn.cancel()

    await ends_soon(turn)
    # A turn with nothing to wait for may have ended before.
    assert turn.cancelled() or turn.result().ended
    assert (await harness.turn("Hello again!")).ended


async def turns_of_one_engine_do_not_disturb_each_other(subject: Subject) -> None:
    shared = Shared(subject.engine())
    first, second = EngineHarness(shared), EngineHarness(shared)

    ended = await asyncio.gather(first.turn("Hello!"), second.turn("Hello!"))

    assert all(isinstance(result.ended, TurnEnded) for result in ended)
