"""Sessions of engines that remember."""

from backburner.core.errors import SessionGone
from support.contracts.engine.harness import EngineHarness, Subject


async def a_session_keeps_its_id(subject: Subject) -> None:
    harness = EngineHarness(subject)
    await harness.turn("Hello!")
    first = harness.session_id
    remembered = len(harness.memory)

    result = await harness.turn("Hello again!")

    assert result.ended
    assert harness.session_id == first is not None
    assert 0 < remembered < len(harness.memory)


async def two_sessions_have_different_ids(subject: Subject) -> None:
    one, other = EngineHarness(subject), EngineHarness(subject)
    await one.turn()
    await other.turn()

    assert one.session_id != other.session_id


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
