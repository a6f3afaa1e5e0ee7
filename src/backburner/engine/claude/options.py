"""Options of a Claude Code program: it gets what is listed here and nothing else."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from claude_agent_sdk import ClaudeAgentOptions, SessionStore
from claude_agent_sdk.types import SystemPromptCustom

from backburner.engine.claude.builtins import Hooks
from backburner.engine.claude.relay import Line
from backburner.engine.claude.sessions import TranscriptMirror
from backburner.engine.claude.tools import TurnTools, serve
from backburner.engine.persona import SYSTEM_PROMPT

#: The program needs a key; the relay replaces this one by the real one.
KEY_PLACEHOLDER = "held-by-the-relay"
#: Variables that the SDK adds to the environment of the program.
SDK_VARIABLES = (
    "CLAUDE_AGENT_SDK_VERSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SDK_READS_SESSION_STATE",
    "PWD",
)
PROGRAM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: A run has limits of its own.
MAX_CALL_MILLISECONDS = 24 * 3600 * 1000
MAX_RESULT_TOKENS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramOptions:
    model: str
    #: Use a subscription instead of a key.
    subscription: bool
    #: The tools of Claude Code itself that are switched on.
    builtins: Sequence[str]
    launcher: Path
    home: Path
    workspace: Path
    session: str | None
    schema: Mapping[str, Any] | None


def build(
    options: ProgramOptions, line: Line, tools: TurnTools, hooks: Hooks, mirror: TranscriptMirror
) -> ClaudeAgentOptions:
    servers = serve(tools)
    return ClaudeAgentOptions(
        model=options.model,
        # Otherwise a session would keep the tools that it started with.
        system_prompt=SystemPromptCustom(type="custom", prompt=SYSTEM_PROMPT, snapshot=False),
        tools=list(options.builtins),
        allowed_tools=[f"mcp__{name}" for name in servers],
        permission_mode="dontAsk",
        mcp_servers=dict(servers),
        strict_mcp_config=True,
        setting_sources=[],
        skills=[],
        hooks=hooks.matchers(),
        cwd=options.workspace,
        cli_path=options.launcher,
        env=environment(options, line),
        resume=options.session,
        # It has only the methods of a store that are needed here.
        session_store=cast(SessionStore, mirror),
        session_store_flush="eager",
        include_partial_messages=True,
        verbatim_prompts=True,
        output_format=None
        if options.schema is None
        else {"type": "json_schema", "schema": dict(options.schema)},
    )


def config_folder(home: Path) -> Path:
    return home / ".claude"


def variable_names(options: ProgramOptions, line: Line) -> list[str]:
    """Name the variables that the program may inherit; the SDK would pass on all of ours."""
    return [*environment(options, line), *SDK_VARIABLES]


def environment(options: ProgramOptions, line: Line) -> dict[str, str]:
    credential = "CLAUDE_CODE_OAUTH_TOKEN" if options.subscription else "ANTHROPIC_API_KEY"
    variables = {
        credential: KEY_PLACEHOLDER,
        "ANTHROPIC_BASE_URL": line.address,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "CLAUDE_CONFIG_DIR": str(config_folder(options.home)),
        "DISABLE_AUTOUPDATER": "1",
        # Long sessions are renewed by us before they need compacting.
        "DISABLE_COMPACT": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
        "HOME": str(options.home),
        "LANG": "C.UTF-8",
        "MAX_MCP_OUTPUT_TOKENS": str(MAX_RESULT_TOKENS),
        "MCP_TOOL_TIMEOUT": str(MAX_CALL_MILLISECONDS),
        "PATH": PROGRAM_PATH,
        "TMPDIR": str(options.home / "tmp"),
    }
    # The program refuses to run as root otherwise; its confinement does not depend on it.
    return {**variables, "IS_SANDBOX": "1"} if os.geteuid() == 0 else variables
