"""Where clients outside hand out work from: one conversation for each token."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import func, select
from support.doubles.clock import SetClock
from support.doubles.engine import ScriptedEngine
from support.people.tokens import issue_token
from support.stage.make import USER
from support.stage.stage import Stage

from backburner.actions.accounts import credentials
from backburner.actions.work import mcp_clients
from backburner.bus.local import LocalBus
from backburner.core.accounts import Caller, Scope
from backburner.core.errors import NotFound
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.dialect import make_engine


@pytest.fixture(params=["migrated_sqlite_url", "migrated_postgres_url"], ids=["sqlite", "postgres"])
def either(request: pytest.FixtureRequest) -> Iterator[Stage]:
    url: str = request.getfixturevalue(request.param)
    with closing(Database(make_engine(url), SetClock())) as database:
        yield Stage(database, LocalBus(), ScriptedEngine())


async def client(stage: Stage, name: str = "editor") -> Caller:
    deps = stage.deps
    secret = await issue_token(deps, stage.user(), [Scope.WRITE], name=name)
    found = await credentials.identify(deps, secret)
    assert found
    return found


async def test_many_calls_at_once_find_one_conversation(either: Stage) -> None:
    caller = await client(either)
    found = await asyncio.gather(
        *(mcp_clients.ensure_origin(either.deps, caller) for _ in range(8))
    )

    assert len(set(found)) == 1
    counted = select(func.count()).select_from(tables.conversations)
    assert either.database.run(lambda tx: tx.connection.execute(counted).scalar_one()) == 1


async def test_a_token_that_is_gone_has_no_place(stage: Stage) -> None:
    caller = await client(stage)
    forget = tables.credentials.delete()
    stage.database.run(lambda tx: tx.connection.execute(forget))

    with pytest.raises(NotFound):
        await mcp_clients.ensure_origin(stage.deps, caller)


@pytest.mark.parametrize(
    ("called", "title"),
    [
        ("", "editor"),
        ("Claude Code", "Claude Code (token editor)"),
        ("  \n\x1b[2J ", "[2J (token editor)"),
        ("x" * 1000, f"{'x' * 60} (token editor)"),
    ],
)
async def test_what_a_client_calls_itself_is_shown_as_far_as_it_can_be(
    stage: Stage, called: str, title: str
) -> None:
    origin = await mcp_clients.ensure_origin(stage.deps, await client(stage), client=called)

    found = stage.database.run(lambda tx: tx.conversations.load(USER, origin.conversation))
    assert found.title == title


async def test_a_token_without_a_name_has_a_place_with_one(stage: Stage) -> None:
    origin = await mcp_clients.ensure_origin(stage.deps, await client(stage, name=""))

    found: Any = stage.database.run(lambda tx: tx.conversations.load(USER, origin.conversation))
    assert found.title == "MCP client"
