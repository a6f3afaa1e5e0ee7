"""How the agent's program is started: with nothing that it was not given."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from claude_agent_sdk import ClaudeAgentOptions, SessionStore
from claude_agent_sdk.types import SystemPromptCustom

from backburner.engine.claude.builtins import Hooks
from backburner.engine.claude.relay import Line
from backburner.engine.claude.sessions import Mirror
from backburner.engine.claude.tools import Hands, serve
from backburner.engine.persona import SYSTEM_PROMPT

#: Stands where the program looks for a key; the relay puts the real one in its place.
NO_KEY = "held-by-the-relay"
#: What the SDK adds to the environment that the program is given.
ADDED = (
    "CLAUDE_AGENT_SDK_VERSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SDK_READS_SESSION_STATE",
    "PWD",
)
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: In milliseconds; a run has limits of its own.
LONGEST_CALL = 24 * 3600 * 1000
LONGEST_RESULT = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a program is started with."""

    model: str
    #: It is used with a subscription instead of a key.
    subscription: bool
    #: Claude Code's own tools that it has.
    builtins: Sequence[str]
    launcher: Path
    home: Path
    workspace: Path
    session: str | None
    schema: Mapping[str, Any] | None


def build(
    start: Start, line: Line, hands: Hands, hooks: Hooks, mirror: Mirror
) -> ClaudeAgentOptions:
    servers = serve(hands)
    return ClaudeAgentOptions(
        model=start.model,
        # Otherwise a session would see tools for ever as they were when it began.
        system_prompt=SystemPromptCustom(type="custom", prompt=SYSTEM_PROMPT, snapshot=False),
        tools=list(start.builtins),
        allowed_tools=[f"mcp__{name}" for name in servers],
        permission_mode="dontAsk",
        mcp_servers=dict(servers),
        strict_mcp_config=True,
        setting_sources=[],
        skills=[],
        hooks=hooks.matchers(),
        cwd=start.workspace,
        cli_path=start.launcher,
        env=environment(start, line),
        resume=start.session,
        # Of what a store can do, it does what is needed here.
        session_store=cast(SessionStore, mirror),
        session_store_flush="eager",
        include_partial_messages=True,
        verbatim_prompts=True,
        output_format=None
        if start.schema is None
        else {"type": "json_schema", "schema": dict(start.schema)},
    )


def config_folder(home: Path) -> Path:
    return home / ".claude"


def kept(start: Start, line: Line) -> list[str]:
    """Name all that the program may see of the environment it is started in.

    The SDK starts it with everything that our own process has.
    """
    return [*environment(start, line), *ADDED]


def environment(start: Start, line: Line) -> dict[str, str]:
    credential = "CLAUDE_CODE_OAUTH_TOKEN" if start.subscription else "ANTHROPIC_API_KEY"
    given = {
        credential: NO_KEY,
        "ANTHROPIC_BASE_URL": line.address,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "CLAUDE_CONFIG_DIR": str(config_folder(start.home)),
        "DISABLE_AUTOUPDATER": "1",
        # Sessions that have become long are begun anew before it would come to that.
        "DISABLE_COMPACT": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
        "HOME": str(start.home),
        "LANG": "C.UTF-8",
        "MAX_MCP_OUTPUT_TOKENS": str(LONGEST_RESULT),
        "MCP_TOOL_TIMEOUT": str(LONGEST_CALL),
        "PATH": PATH,
        "TMPDIR": str(start.home / "tmp"),
    }
    # The program does not run as root otherwise; what it can reach does not depend on it.
    return {**given, "IS_SANDBOX": "1"} if os.geteuid() == 0 else given
