"""The store keeps its promises on both databases."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from postgres_server import new_postgres
from sqlalchemy import delete, make_url, text

from backburner.core.run import RunStatus
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.store.tables import users
from backburner.store.tx import Tx
from backburner.testing.clock import SetClock
from backburner.testing.scene import Scene
from backburner.testing.store_contract import PROMISES, Promise


@pytest.fixture(scope="module")
def one_postgres(postgres_url: str, postgres_template: str) -> Iterator[Database]:
    with (
        new_postgres(postgres_url, template=make_url(postgres_template).database) as url,
        closing(Database(make_engine(url), SetClock())) as database,
    ):
        yield database


@pytest.fixture
def emptied_postgres(one_postgres: Database) -> Database:
    """Empty a database, which is faster than making one."""
    one_postgres.run(lambda tx: tx.connection.execute(delete(users)))
    return one_postgres


@pytest.fixture(params=["sqlite", "emptied_postgres"], ids=["sqlite", "postgres"])
def scene(request: pytest.FixtureRequest) -> Scene:
    return Scene(request.getfixturevalue(request.param))


@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
def test_the_store_promises_that(promise: Promise, scene: Scene) -> None:
    promise(scene)


def test_a_commit_takes_place_once_though_the_server_ends_the_connection(
    postgres: Database,
) -> None:
    scene = Scene(postgres)
    task = scene.task()
    claim = scene.begin_work()
    ended: list[bool] = []

    def commit(tx: Tx) -> None:
        scene.finishing(claim)(tx.connection)
        if not ended:
            number = tx.connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
            end = text("SELECT pg_terminate_backend(:number, 10000)").bindparams(number=number)
            ended.append(scene.run(lambda db: db.execute(end).scalar_one()))

    postgres.commit_here(claim.turn, commit)

    assert ended == [True]
    assert [run.status for run in scene.history(task)] == [RunStatus.SUCCESS]
    assert scene.load(task).run_count == 1
