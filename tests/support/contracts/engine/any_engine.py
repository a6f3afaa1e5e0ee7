"""What every engine promises, with or without a model."""

import asyncio

from backburner.core.outcome import parse_outcome
from backburner.ports import TextDelta, TurnEnded
from support.contracts.engine.trial import Shared, Subject, Trial, ends_soon


async def a_turn_says_something_and_ends_with_it(subject: Subject) -> None:
    heard = await Trial(subject).turn("Hello!")

    assert heard.end.text
    assert "".join(heard.said) == heard.end.text
    assert heard.end.outcome is None


async def a_turn_in_the_background_ends_with_an_outcome(subject: Subject) -> None:
    heard = await Trial(subject).turn("Do the work.", ends_with_outcome=True)

    end = heard.end
    parse_outcome(end.text if end.outcome is None else end.outcome)


async def a_turn_that_is_left_early_ends(subject: Subject) -> None:
    trial = Trial(subject)
    async with asyncio.timeout(30), trial.events("Hello!") as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break

    assert (await trial.turn("Hello again!")).ended


async def a_turn_that_is_cancelled_at_once_ends(subject: Subject) -> None:
    trial = Trial(subject)
    turn = asyncio.create_task(trial.turn("Hello!"))
    await asyncio.sleep(0)
    turn.cancel()

    await ends_soon(turn)
    # One that had nothing to wait for may have been done before.
    assert turn.cancelled() or turn.result().ended
    assert (await trial.turn("Hello again!")).ended


async def turns_of_one_engine_do_not_disturb_each_other(subject: Subject) -> None:
    shared = Shared(subject.engine())
    first, second = Trial(shared), Trial(shared)

    ended = await asyncio.gather(first.turn("Hello!"), second.turn("Hello!"))

    assert all(isinstance(heard.ended, TurnEnded) for heard in ended)
