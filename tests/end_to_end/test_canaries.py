"""No agent gets to see a credential: not what it was started with, not by looking for it."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url
from support.doubles.tools import ALONE
from support.faults.canaries import (
    canary,
    descendants,
    found_in,
    in_files,
    in_process,
    seen_by,
    write_scan,
)
from support.faults.outside import Outside
from support.model_api import CallTool, ModelApi, Say, Stall
from support.programs.programs import Running
from support.programs.real_workers import RealWorkers
from support.requirements import requirement

from backburner.core.tool_policy import Tool, ToolCall
from backburner.engine.claude.builtins import BUILTIN_SERVER
from backburner.gateway.network import CheckedNetwork
from backburner.process.shell import ConfinedShell
from backburner.settings.settings import secret_names
from backburner.tools.workspace import workspace_offers

pytestmark = pytest.mark.starts

IN_ENVIRONMENT = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "OPENAI_API_KEY",
)
KEY, TOKEN = canary("key"), canary("token")
OPENAI_KEY, PASSWORD = canary("openai"), canary("password")
IN_DATA, IN_HOME, LOOSE = canary("data"), canary("home"), canary("loose")
#: The one that an agent may see.
OPEN = canary("workspace")


@dataclass
class Spied:
    """A worker that has secrets wherever it could have one."""

    workers: RealWorkers
    home: Path
    loose: Path

    def start(self, **settings: Any) -> Running:
        variables = {name: canary(name.lower().replace("_", "-")) for name in IN_ENVIRONMENT}
        return self.workers.start(env={"HOME": str(self.home), **variables}, **settings)

    def write_scan(self, worker: Running) -> None:
        write_scan(
            self.workers.workspace() / "scan.sh",
            {
                "data": self.workers.data(),
                "home": self.home,
                "loose": self.loose,
                "worker": worker.process.pid,
            },
        )


@pytest.fixture
def guarded_url(migrated_postgres_url: str) -> Iterator[str]:
    """Let the database be reached with a password."""
    role = f"canary_{os.getpid()}"
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
        for what in ("TABLES", "SEQUENCES"):
            connection.execute(f"GRANT ALL ON ALL {what} IN SCHEMA public TO {role}")
        url = make_url(migrated_postgres_url).set(username=role, password=PASSWORD)
        yield url.render_as_string(hide_password=False)
        connection.execute(f"DROP OWNED BY {role}")
        connection.execute(f"DROP ROLE {role}")


@pytest.fixture
def spied(workers: RealWorkers, guarded_url: str, tmp_path: Path) -> Iterator[Spied]:
    assert secret_names() == ("database_url", "database_direct_url", "profiles")
    data, home = workers.data(), tmp_path / "home"
    for folder in (data, home, home / ".aws"):
        folder.mkdir()
    (data / "canary.txt").write_text(f"{IN_DATA}\n")
    (data / "openai.key").write_text(f"{OPENAI_KEY}\n")
    (home / ".aws" / "credentials").write_text(f"{IN_HOME}\n")
    (workers.workspace() / "open.txt").write_text(f"{OPEN}\n")
    claude = workers.profiles["claude"]
    without_key = {name: claude[name] for name in claude if name != "key"}
    key_file = str(data / "openai.key")
    workers.profiles |= {
        "claude": without_key | {"key": KEY},
        "subscription": without_key | {"token": TOKEN},
        "other": {
            "engine": "openai",
            "address": claude["address"],
            "model": "m",
            "key_file": key_file,
        },
    }
    urls = {"database_url": guarded_url, "database_direct_url": guarded_url}
    workers.settings |= {"profile": "claude", **urls}
    with tempfile.NamedTemporaryFile("w", prefix="loose-") as loose:
        loose.write(f"{LOOSE}\n")
        loose.flush()
        yield Spied(workers, home, Path(loose.name))


@requirement("Z-model-key", "B-command")
def test_an_agent_that_looks_for_credentials_finds_none(
    spied: Spied, model: ModelApi, outside: Outside
) -> None:
    data, line = spied.workers.data(), "bash scan.sh thoroughly"
    ours, claudes = {"command": line, "network": True}, {"command": line, "description": "Look."}
    worker = spied.start(claude_tools=["Bash", "Read"])
    spied.write_scan(worker)
    secrets = (data / "canary.txt", data / "backburner.toml")
    model.then(CallTool("run_command", ours))
    model.then(CallTool("Bash", claudes))
    model.then(
        *(CallTool("Read", {"file_path": str(path)}) for path in secrets),
        CallTool("read_file", {"path": "../../canary.txt"}),
    )
    model.then(Say("I have looked around."), Stall())
    chat = outside.chat()
    run_command = find_run_command(spied.workers.workspace())
    outside.allow(chat, ToolCall(run_command, ours), once=True)
    outside.allow(
        chat,
        ToolCall(Tool(server=BUILTIN_SERVER, name="Bash", definition="Bash"), claudes),
        once=True,
    )

    outside.tell(chat, "Look around.")

    outside.wait_for(lambda: len(model.requests) == 4)
    calls = outside.rows("SELECT tool, result FROM tool_calls ORDER BY started_at")
    tools = [tool for tool, _ in calls]
    # The last three are made at the same time.
    assert tools[:2] + sorted(tools[2:]) == ["run_command", "Bash", "Read", "Read", "read_file"]
    assert [found_in(result.encode()) for _, result in calls] == [{OPEN}, {OPEN}, *[set()] * 3]
    assert seen_by(model) == {OPEN}
    assert {heard.headers.get("x-api-key") for heard in model.requests} == {KEY}
    # And while the agent is still there:
    assert held_by_agents(worker) == set()
    assert in_files(data / "agents") == {OPEN}
    # It would have been found: our own process has to hold the key.
    assert KEY in in_process(worker.process.pid)
    # Whoever is not confined finds all of them.
    assert scan_unconfined(spied.workers.workspace()) >= {
        *(canary(name.lower().replace("_", "-")) for name in IN_ENVIRONMENT),
        *(KEY, TOKEN, OPENAI_KEY, PASSWORD, IN_DATA, IN_HOME, LOOSE, OPEN),
    }
    ended = worker.end(signal.SIGTERM)
    assert found_in("\n".join([*ended.out, *ended.err]).encode()) == set()


@requirement("Z-model-key")
def test_a_subscription_is_used_with_its_token_which_the_agent_does_not_have(
    spied: Spied, model: ModelApi, outside: Outside
) -> None:
    model.otherwise = lambda _: [Say("Hello."), Stall()]
    # What it would load for the other one takes long.
    del spied.workers.profiles["other"]
    worker = spied.start(profile="subscription")
    outside.tell(outside.chat(), "Hello?")
    outside.wait_for(lambda: model.requests)

    (asked, *_) = model.requests
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"
    assert "x-api-key" not in asked.headers
    assert "oauth-2025-04-20" in asked.headers["anthropic-beta"].split(",")
    assert held_by_agents(worker) == set()
    assert seen_by(model) == set()


def held_by_agents(worker: Running) -> set[str]:
    """Look at every process that a worker has started, apart from what it may have seen."""
    agents = descendants(worker.process.pid)
    assert len(agents) >= 3
    return set().union(*map(in_process, agents)) - {OPEN}


def find_run_command(workspace: Path) -> Tool:
    offers = workspace_offers(workspace, workspace, ConfinedShell(), CheckedNetwork(), ALONE)
    (tool,) = (one.tool for one in offers if one.tool.name == "run_command")
    return tool


def scan_unconfined(workspace: Path) -> set[str]:
    done = subprocess.run(
        ["/bin/bash", "scan.sh"], cwd=workspace, stdout=subprocess.PIPE, check=True, timeout=20
    )
    return found_in(done.stdout)
