"""Sessions of engines that remember."""

from backburner.core.errors import SessionGone
from backburner.core.ids import CallId
from backburner.ports import SessionEntries, ToolResult
from support.contracts.engine.harness import EngineHarness, ModelSubject, Subject
from support.model_api import CallTool, Say


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


async def entries_name_the_calls_whose_results_they_hold(subject: ModelSubject) -> None:
    subject.api.then(CallTool("look"))
    subject.api.then(CallTool("send", {"to": "a"}), CallTool("send", {"to": "b"}))
    subject.api.then(Say("Sent."))
    harness = EngineHarness(subject)
    results = {CallId(f"t_{number}"): f"It is result {number}." for number in range(3)}
    harness.gate.answers += [ToolResult(text, call_id=one) for one, text in results.items()]
    named = list[CallId]()

    async with harness.events("Send it.") as events:
        async for event in events:
            if isinstance(event, SessionEntries):
                assert all(results[one] in "".join(event.entries) for one in event.calls)
                named += event.calls

    assert sorted(named) == sorted(results)
