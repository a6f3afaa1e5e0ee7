"""Sessions of engines that remember."""

from backburner.core.errors import SessionGone
from support.contracts.engine.harness import EngineHarness, Subject


async def a_session_without_its_memory_continues_or_is_gone(subject: Subject) -> None:
    harness = EngineHarness(subject)
    await harness.turn("Hello!")
    harness.memory.clear()
    try:
        result = await harness.turn("Hello again!")
    except SessionGone:
        fresh = EngineHarness(subject)
        result = await fresh.turn("Hello again!")

    assert result.ended
