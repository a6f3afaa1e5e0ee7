"""Claude Code's own tools, where they are switched on: through the same gate.

The program makes these calls itself, and runs a hook before and after. To the gate, such a call is
like any other: it starts when the gate admits it, and ends when the program reports its result.
"""

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    HookContext,
    HookInput,
    HookJSONOutput,
    HookMatcher,
    PreToolUseHookSpecificOutput,
)

from backburner.core.obeyed_files import is_obeyed
from backburner.core.tool_policy import GrantMatch, Tool
from backburner.engine.claude.relay import Line
from backburner.engine.claude.tools import TurnTools
from backburner.ports import Offer, ToolResult

#: The server of these tools, as the gate knows it.
BUILTIN_SERVER = "claude"
#: The tool with which the program returns an outcome; it has no effects.
OUTCOME_TOOL = "StructuredOutput"
#: These only read, and only files that the program can.
READ_ONLY = frozenset({"Glob", "Grep", "Read"})
#: These write the file that an argument names.
WRITING = {
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
    "Write": "file_path",
}
#: These reach the network, and no files.
REACHING = frozenset({"WebFetch", "WebSearch"})
NARROWINGS = {"Bash": GrantMatch.COMMAND, "WebFetch": GrantMatch.HOST}
#: A call may wait for as long as the gate does.
HOOK_TIMEOUT_SECONDS = 24 * 3600.0
TURN_ENDS = "The turn ends here."


@dataclass(slots=True)
class _PendingCall:
    calling: "asyncio.Task[ToolResult]"
    ended: "asyncio.Future[ToolResult]"


@dataclass(slots=True)
class Hooks:
    """Hooks that the program runs before and after each call."""

    tools: TurnTools
    line: Line
    workspace: Path
    _calls: dict[str, _PendingCall] = field(default_factory=dict)

    def matchers(self) -> dict[Any, list[HookMatcher]]:
        before = HookMatcher(hooks=[self._before], timeout=HOOK_TIMEOUT_SECONDS, on_failure="block")
        after = HookMatcher(hooks=[self._after], timeout=HOOK_TIMEOUT_SECONDS, on_failure="block")
        return {"PreToolUse": [before], "PostToolUse": [after], "PostToolUseFailure": [after]}

    def cancel_calls(self) -> None:
        for call in self._calls.values():
            call.calling.cancel()
        self._calls.clear()

    async def _before(
        self, hook: HookInput, tool_use_id: str | None, context: HookContext
    ) -> HookJSONOutput:
        del context
        name = str(hook.get("tool_name"))
        if name.startswith("mcp__") or name == OUTCOME_TOOL:
            # Calls of MCP tools come through their server, which asks the gate.
            return {}
        gate = self.tools.gate
        if gate is None:
            return _deny(TURN_ENDS, stop=True)
        admitted, ended = asyncio.Event(), asyncio.Future[ToolResult]()

        async def run(_: Mapping[str, Any]) -> ToolResult:
            admitted.set()
            return await ended

        arguments = hook.get("tool_input")
        arguments = arguments if isinstance(arguments, dict) else {}
        writes = WRITING.get(name)
        is_guarded = writes is not None and self._is_guarded(arguments.get(writes), hook)
        offer = _offer(name, run, is_guarded=is_guarded)
        making = self.tools.make(offer, arguments, tool_use_id=tool_use_id or "")
        calling = asyncio.create_task(making)
        waiting = asyncio.create_task(admitted.wait())
        await asyncio.wait({calling, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if calling.done():
            result = calling.result()
            self.line.ended |= result.stop
            return _deny(result.text, stop=result.stop)
        self._calls[tool_use_id or ""] = _PendingCall(calling, ended)
        return {
            "hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
        }

    def _is_guarded(self, path: object, hook: HookInput) -> bool:
        """Return whether each write needs approval: to files that are obeyed, or in other folders.

        The program may work in a folder of the workspace, so the workspace decides.
        """
        folder = hook.get("cwd")
        if not isinstance(path, str) or not isinstance(folder, str):
            return True
        root = os.path.realpath(self.workspace)
        real = os.path.realpath(os.path.join(folder, path))  # noqa: PTH118
        inside = os.path.relpath(real, root)
        return inside.startswith("..") or is_obeyed(inside)

    async def _after(
        self, hook: HookInput, tool_use_id: str | None, context: HookContext
    ) -> HookJSONOutput:
        del context
        call = self._calls.pop(tool_use_id or "", None)
        if call is not None:
            failed = hook.get("hook_event_name") == "PostToolUseFailure"
            result = hook.get("error") if failed else hook.get("tool_response")
            text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
            call.ended.set_result(ToolResult(text, failed=failed))
            await call.calling
        if self.tools.stopped:
            # After a failed call the program continues, whatever the hook returns.
            self.line.ended = True
            return {"continue_": False, "stopReason": TURN_ENDS}
        return {}


def _offer(name: str, run: Any, *, is_guarded: bool) -> Offer:
    """Describe a tool for one call of it."""
    read_only = name in READ_ONLY
    return Offer(
        tool=Tool(
            server=BUILTIN_SERVER,
            name=name,
            definition=name,
            free=read_only,
            grant_match=GrantMatch.NOTHING if is_guarded else NARROWINGS.get(name, GrantMatch.TOOL),
        ),
        description="",
        parameters={},
        read_only=read_only,
        in_folder=name not in REACHING,
        run=run,
    )


def _deny(reason: str, *, stop: bool) -> HookJSONOutput:
    decision = PreToolUseHookSpecificOutput(
        hookEventName="PreToolUse", permissionDecision="deny", permissionDecisionReason=reason
    )
    if stop:
        return {"hookSpecificOutput": decision, "continue_": False, "stopReason": TURN_ENDS}
    return {"hookSpecificOutput": decision}
