"""The tools that Claude Code brings along, where they are switched on: through the same gate.

The program makes these calls itself and asks before and after. To the gate such a call looks like
any other: it begins when the gate admits it, and ends when the program says what came of it.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from claude_agent_sdk import (
    HookContext,
    HookInput,
    HookJSONOutput,
    HookMatcher,
    PreToolUseHookSpecificOutput,
)

from backburner.core.tool_policy import GrantMatch, Tool
from backburner.engine.claude.relay import Line
from backburner.engine.claude.tools import Hands
from backburner.ports import Offer, ToolResult

#: What the gate knows them under.
SERVER = "claude"
#: The program's own way to end with an outcome; it does nothing.
OUTCOME = "StructuredOutput"
#: These only look, and no further than the program can.
READING = frozenset({"Glob", "Grep", "Read"})
GRANT_MATCHES = {"Bash": GrantMatch.COMMAND, "WebFetch": GrantMatch.HOST}
#: Seconds that a hook may take: a call waits for whatever the gate waits for.
PATIENCE = 24 * 3600.0
ENOUGH = "The turn ends here."


@dataclass(slots=True)
class _Call:
    calling: "asyncio.Task[ToolResult]"
    ended: "asyncio.Future[ToolResult]"


@dataclass(slots=True)
class Hooks:
    """What the program asks before and after each call."""

    hands: Hands
    line: Line
    _calls: dict[str, _Call] = field(default_factory=dict)

    def matchers(self) -> dict[Any, list[HookMatcher]]:
        before = HookMatcher(hooks=[self._before], timeout=PATIENCE, on_failure="block")
        after = HookMatcher(hooks=[self._after], timeout=PATIENCE, on_failure="block")
        return {"PreToolUse": [before], "PostToolUse": [after], "PostToolUseFailure": [after]}

    def give_up(self) -> None:
        for call in self._calls.values():
            call.calling.cancel()
        self._calls.clear()

    async def _before(
        self, asked: HookInput, tool_use_id: str | None, context: HookContext
    ) -> HookJSONOutput:
        del context
        name = str(asked.get("tool_name"))
        if name.startswith("mcp__") or name == OUTCOME:
            # The first come through their server, which asks the gate.
            return {}
        gate = self.hands.gate
        if gate is None:
            return _deny(ENOUGH, stop=True)
        admitted, ended = asyncio.Event(), asyncio.Future[ToolResult]()

        async def run(_: Mapping[str, Any]) -> ToolResult:
            admitted.set()
            return await ended

        arguments = asked.get("tool_input")
        arguments = arguments if isinstance(arguments, dict) else {}
        calling = asyncio.create_task(self.hands.make(_offer(name, run), arguments))
        waiting = asyncio.create_task(admitted.wait())
        await asyncio.wait({calling, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if calling.done():
            result = calling.result()
            self.line.ended |= result.stop
            return _deny(result.text, stop=result.stop)
        self._calls[tool_use_id or ""] = _Call(calling, ended)
        return {
            "hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
        }

    async def _after(
        self, said: HookInput, tool_use_id: str | None, context: HookContext
    ) -> HookJSONOutput:
        del context
        call = self._calls.pop(tool_use_id or "", None)
        if call is not None:
            failed = said.get("hook_event_name") == "PostToolUseFailure"
            came = said.get("error") if failed else said.get("tool_response")
            text = came if isinstance(came, str) else json.dumps(came, ensure_ascii=False)
            call.ended.set_result(ToolResult(text, failed=failed))
            await call.calling
        if self.hands.stopped:
            # After a call that failed, the program would go on whatever it is told.
            self.line.ended = True
            return {"continue_": False, "stopReason": ENOUGH}
        return {}


def _offer(name: str, run: Any) -> Offer:
    reads = name in READING
    return Offer(
        tool=Tool(
            server=SERVER,
            name=name,
            definition=name,
            free=reads,
            grant_match=GRANT_MATCHES.get(name, GrantMatch.TOOL),
        ),
        description="",
        parameters={},
        read_only=reads,
        run=run,
    )


def _deny(reason: str, *, stop: bool) -> HookJSONOutput:
    decision = PreToolUseHookSpecificOutput(
        hookEventName="PreToolUse", permissionDecision="deny", permissionDecisionReason=reason
    )
    if stop:
        return {"hookSpecificOutput": decision, "continue_": False, "stopReason": ENOUGH}
    return {"hookSpecificOutput": decision}
