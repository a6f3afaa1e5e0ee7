"""Claude Code on somebody's own machine, as a client of ours; its model alone is a stand-in."""

import asyncio
import json
import os
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backburner.engine.installed import find_claude_code
from support.model_api import ModelApi

#: In seconds; it takes a few to start.
PATIENCE = 60


async def ask_claude(
    api: ModelApi, home: Path, servers: Mapping[str, Any], prompt: str = "Go on."
) -> str:
    """Let it do one turn with some MCP servers, and give the last words of it."""
    config = home / "mcp.json"
    await asyncio.to_thread(config.write_text, json.dumps({"mcpServers": dict(servers)}))
    command = [
        *(str(find_claude_code()), "--print", prompt),
        *("--mcp-config", str(config), "--strict-mcp-config"),
        *("--allowedTools", *(f"mcp__{name}" for name in servers)),
        *("--model", "claude-sonnet-4-5", "--output-format", "text"),
    ]
    program = await asyncio.create_subprocess_exec(
        *command, cwd=home, env=_environment(api, home), stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    try:
        async with asyncio.timeout(PATIENCE):
            out, err = await program.communicate(b"")
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
    assert program.returncode == 0, (out, err)
    return out.decode().strip()


def _environment(api: ModelApi, home: Path) -> dict[str, str]:
    given = {
        "ANTHROPIC_API_KEY": "not-a-key",
        "ANTHROPIC_BASE_URL": api.address,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "DISABLE_AUTOUPDATER": "1",
        # Otherwise the model would be shown only names, and have to look tools up first.
        "ENABLE_TOOL_SEARCH": "false",
        "HOME": str(home),
        "PATH": os.environ["PATH"],
    }
    # It does not run as root otherwise.
    return {**given, "IS_SANDBOX": "1"} if os.geteuid() == 0 else given
