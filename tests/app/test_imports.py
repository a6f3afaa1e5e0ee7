"""What each program imports from its start until it is ready: only what it uses.

Most of a start, and of the memory of an idle program, is modules.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.programs.programs import Ended, Running, Start

pytestmark = pytest.mark.starts

#: Libraries of agents, of protocols and of data that a program needs at their first use.
AT_FIRST_USE = frozenset(
    "alembic anthropic claude_agent_sdk cryptography genai_prices httpcore2 httpx2 mcp openai"
    " pydantic_ai backburner.engine.claude backburner.gateway.network tree_sitter"
    " tree_sitter_bash".split()
)
WEB_SERVER = frozenset(
    "argon2 backburner.api backburner.web fastapi opentelemetry starlette uvicorn".split()
)
POSTGRES = frozenset("backburner.bus.postgres psycopg".split())
#: A command that talks to a server reads no settings and no database.
SERVER_SIDE = (
    AT_FIRST_USE
    | WEB_SERVER
    | POSTGRES
    | set("asyncio backburner.settings pydantic sqlalchemy structlog".split())
)

#: Rules of conversations, and what they need.
RULES = frozenset("backburner.core.conversation backburner.core.run cronsim zoneinfo".split())


def test_a_worker_imports_neither_the_web_server_nor_libraries_of_later(
    start: Start, tmp_path: Path, migrated_postgres_url: str
) -> None:
    worker = start_listing(
        start, "worker", "--data", tmp_path, "--database-url", migrated_postgres_url
    )
    assert ": worker " in worker.read_line()

    imported = set(imports(worker.end(signal.SIGTERM)))

    assert "backburner.worker.service" in imported
    assert imported & (AT_FIRST_USE | WEB_SERVER) == set()


def test_a_server_with_a_file_imports_nothing_of_postgresql_and_a_client_no_settings(
    start: Start, tmp_path: Path
) -> None:
    # Migrated, so that the start that is looked at finds a database which is up to date.
    first = start("up", "--port", "0", "--data", tmp_path)
    first.wait_until_ready()
    assert first.end(signal.SIGTERM).code == 0
    server = start_listing(start, "up", "--port", "0", "--data", tmp_path)
    server.wait_until_ready()
    said = start_listing(start, "say", "hello", "--data", tmp_path).end()
    imported = set(imports(server.end(signal.SIGTERM)))

    assert said.code == 0
    assert set(imports(said)) & (SERVER_SIDE | RULES) == set()
    assert "backburner.api.app" in imported
    assert imported & (AT_FIRST_USE | POSTGRES) == set()


def test_the_version_is_printed_without_any_command(start: Start) -> None:
    imported = set(imports(start_listing(start, "--version").end()))

    assert "backburner.cli.main" in imported
    assert imported & (SERVER_SIDE | {"backburner.cli.commands", "http.client"}) == set()


def start_listing(start: Start, *arguments: str | Path) -> Running:
    """Start a program that lists on stderr what it imports."""
    return start(*arguments, env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"})


def imports(ended: Ended) -> Iterator[str]:
    for line in ended.err:
        if line.startswith("import time:"):
            yield line.rpartition("|")[2].strip()
