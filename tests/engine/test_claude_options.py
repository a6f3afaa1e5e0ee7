"""Options of the Claude Code program: what it gets, and what it does not."""

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from backburner.core.connections.connection import MAX_CALL_TIMEOUT
from backburner.engine.claude.builtins import Hooks
from backburner.engine.claude.options import (
    KEY_PLACEHOLDER,
    ProgramOptions,
    build,
    variable_names,
)
from backburner.engine.claude.relay import Line
from backburner.engine.claude.sessions import TranscriptMirror
from backburner.engine.claude.tools import TurnTools
from backburner.gateway.upstream.session import DEFAULT_POLICY

OPTIONS = ProgramOptions(
    model="claude-sonnet-5-5",
    subscription=False,
    builtins=("Read",),
    launcher=Path("/launcher"),
    home=Path("/home-of-it"),
    workspace=Path("/workspace"),
    session=None,
    schema=None,
)
LINE = Line("http://127.0.0.1:1/line")


def built(options: ProgramOptions = OPTIONS) -> ClaudeAgentOptions:
    tools = TurnTools({})
    return build(options, LINE, tools, Hooks(tools, LINE, options.workspace), TranscriptMirror())


def test_it_reads_no_settings_and_has_only_the_tools_that_are_switched_on() -> None:
    made = built()

    assert (made.setting_sources, made.strict_mcp_config, made.skills) == ([], True, [])
    assert (made.tools, made.allowed_tools, made.permission_mode) == (["Read"], [], "dontAsk")
    assert made.hooks is not None
    assert {"PreToolUse", "PostToolUse"} <= made.hooks.keys()


def test_it_calls_the_relay_with_a_placeholder_for_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of somebody")
    key, subscription = (
        built(replace(OPTIONS, subscription=subscription)).env for subscription in (False, True)
    )

    assert key["ANTHROPIC_API_KEY"] == subscription["CLAUDE_CODE_OAUTH_TOKEN"] == KEY_PLACEHOLDER
    assert "CLAUDE_CODE_OAUTH_TOKEN" not in key
    assert "ANTHROPIC_API_KEY" not in subscription
    assert key["ANTHROPIC_BASE_URL"] == LINE.address


def test_it_inherits_no_variable_that_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKBURNER_DATABASE_URL", "postgresql://secret")
    env = built().env

    assert set(env) <= set(variable_names(OPTIONS, LINE))
    assert "BACKBURNER_DATABASE_URL" not in variable_names(OPTIONS, LINE)
    assert env["HOME"] == "/home-of-it"
    assert env["PATH"] != os.environ["PATH"]


def test_no_call_of_a_connection_is_ended_by_the_program_before_its_own_timeout() -> None:
    attempts = 1 + DEFAULT_POLICY.retries
    pauses = attempts * DEFAULT_POLICY.max_retry_after

    longest = attempts * MAX_CALL_TIMEOUT + pauses

    assert timedelta(milliseconds=int(built().env["MCP_TOOL_TIMEOUT"])) > longest
