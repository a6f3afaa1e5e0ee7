"""The store keeps its promises on both databases."""

import pytest
from sqlalchemy import text
from support.contracts.store import PROMISES, Promise
from support.stage.scene import Scene

from backburner.core.run import RunStatus
from backburner.store.db import Database
from backburner.store.tx import Tx


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
        scene.finishing(claim)(tx)
        if not ended:
            number = tx.connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
            end = text("SELECT pg_terminate_backend(:number, 10000)").bindparams(number=number)
            ended.append(scene.run(lambda tx: tx.connection.execute(end).scalar_one()))

    postgres.commit_here(claim.turn, commit)

    assert ended == [True]
    assert [run.status for run in scene.history(task)] == [RunStatus.SUCCESS]
    assert scene.load(task).run_count == 1
