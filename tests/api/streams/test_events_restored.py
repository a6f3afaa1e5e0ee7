"""Those who followed a database that was put back from a copy: they load everything again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import httpx2
from support.doubles.clock import SetClock
from support.doubles.engine import ScriptedEngine
from support.people.tokens import issue_token
from support.servers.live import Stream, following, serving
from support.stage.make import USER
from support.stage.stage import Stage

from backburner.api.app import build_api
from backburner.bus.local import LocalBus
from backburner.core.accounts import Scope
from backburner.ports import EventKind
from backburner.store.lifecycle import backup
from backburner.store.lifecycle.opening import open_database


@asynccontextmanager
async def followed(
    url: str, clock: SetClock, after: int | None = None
) -> AsyncIterator[tuple[Stage, Stream]]:
    with closing(open_database(url, clock)) as database:
        stage = Stage(database, LocalBus(), ScriptedEngine())
        if after is None:
            stage.user()
        change(stage)
        token = await issue_token(stage.deps, USER, [Scope.READ], name="Test")
        api = build_api(stage.deps, hosts={"127.0.0.1"}, checks={})
        async with (
            serving(api) as address,
            httpx2.AsyncClient(base_url=address) as client,
            following(client, token, after=after) as stream,
        ):
            yield stage, stream


def change(stage: Stage) -> None:
    stage.database.run(lambda tx: tx.changed(USER, None, EventKind.USER))


async def test_a_number_from_before_the_copy_was_put_back_is_not_taken_for_a_new_one(
    tmp_path: Path, clock: SetClock
) -> None:
    url, copy = f"sqlite:///{tmp_path / 'data.sqlite3'}", tmp_path / "copy"
    async with followed(url, clock) as (stage, stream):
        await stream.next("hello")
        backup.copy_in_use(stage.database, copy)
        change(stage)
        seen = (await stream.next("change")).number
    backup.put_back(url, copy, clock)

    # As many changes as there were before.
    async with followed(url, clock, seen) as (stage, stream):
        told = await stream.next()
        change(stage)
        then = await stream.next()
    assert told.name == "reset"
    assert (then.name, then.number) == ("change", (told.number or 0) + 1)
