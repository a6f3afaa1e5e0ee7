"""What an agent was told is kept with its run, once and not too long."""

from collections.abc import Sequence

from support.doubles.clock import SetClock
from support.doubles.engine import Fail
from support.stage.make import USER
from support.stage.provider import DOWN
from support.stage.stage import Stage

from backburner.core.conversation import Conversation
from backburner.core.errors import EngineFailed
from backburner.core.retry import FIRST_REST
from backburner.core.run import MAX_KEPT_PROMPT_CHARS


def prompts(stage: Stage, conversation: Conversation) -> Sequence[str]:
    run = stage.history(conversation)[0]
    return stage.database.run(lambda tx: tx.browse.prompts(USER, run.id, limit=9))


async def test_in_an_outage_the_prompt_is_kept_once(stage: Stage, clock: SetClock) -> None:
    stage.engine.then(DOWN)
    stage.engine.then(DOWN)
    task = await stage.task()
    await stage.work()
    clock.advance(FIRST_REST)
    await stage.work()
    while_it_is_down = prompts(stage, task)
    clock.advance(4 * FIRST_REST)
    await stage.work()

    assert (while_it_is_down, len(stage.engine.requests)) == ([], 3)
    assert prompts(stage, task) == [stage.engine.requests[2].prompt]


async def test_a_failed_run_keeps_its_prompt(stage: Stage) -> None:
    stage.engine.then(Fail(EngineFailed("Broken.")))
    task = await stage.task()
    await stage.work()

    assert prompts(stage, task) == [stage.engine.requests[0].prompt]


async def test_of_a_long_prompt_the_ends_are_kept(stage: Stage) -> None:
    task = await stage.task(prompt="Look. " * 3_000)
    await stage.work()

    (kept,) = prompts(stage, task)

    told = stage.engine.requests[0].prompt
    assert len(told) > len(kept)
    assert len(kept) < MAX_KEPT_PROMPT_CHARS + 100
    assert (kept[:100], kept[-100:]) == (told[:100], told[-100:])
