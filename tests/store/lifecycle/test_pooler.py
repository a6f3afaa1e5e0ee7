"""Settings of PostgreSQL connections: made so that connection poolers can be between."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest
from sqlalchemy import Engine, text
from support.doubles.clock import SetClock

from backburner.app.backup import check
from backburner.app.build import open_bus
from backburner.core.errors import BadSetting
from backburner.settings import load
from backburner.store.db import Database
from backburner.store.dialect import POSTGRES_SETTINGS, is_pooled, make_engine
from backburner.store.lifecycle.opening import open_database
from backburner.store.lifecycle.postgres_server import is_transaction_pooler
from backburner.store.tx import Tx

_SETTINGS = text("SELECT name, setting, unit, source FROM pg_settings WHERE name = ANY(:names)")


@pytest.fixture(params=[False, True], ids=["direct", "pooled"])
def engine(request: pytest.FixtureRequest, migrated_postgres_url: str) -> Iterator[Engine]:
    engine = make_engine(migrated_postgres_url, pooled=request.param)
    yield engine
    engine.dispose()


def shown(engine: Engine) -> dict[str, str]:
    with engine.begin() as connection:
        return {
            name: connection.execute(text(f"SHOW {name}")).scalar_one()
            for name in POSTGRES_SETTINGS
        }


def test_every_transaction_has_the_settings(engine: Engine) -> None:
    wanted = {**POSTGRES_SETTINGS, "statement_timeout": "1min"}

    assert [shown(engine) for _ in range(3)] == [wanted] * 3


def test_no_setting_is_made_where_poolers_refuse_it(engine: Engine) -> None:
    with engine.begin() as connection:
        names = list(POSTGRES_SETTINGS)
        sources = {row.source for row in connection.execute(_SETTINGS, {"names": names})}

    assert "client" not in sources


def test_on_a_shared_connection_nothing_stays_behind(migrated_postgres_url: str) -> None:
    engine = make_engine(migrated_postgres_url, pooled=True)
    with closing(Database(engine, SetClock())) as database:
        for _ in range(10):
            database.run(lambda tx: tx.now)
        with engine.connect() as connection:
            driver = connection.connection.cursor()
            driver.execute("ROLLBACK")
            driver.execute("SHOW lock_timeout")
            left = driver.fetchone()
            prepared = driver.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()

    assert (left, prepared) == (("0",), (0,))


def test_without_a_pooler_statements_are_prepared(migrated_postgres_url: str) -> None:
    with closing(open_database(migrated_postgres_url, SetClock())) as database:
        assert not is_transaction_pooler(database.engine)
        assert not is_pooled(database.engine)
        for _ in range(10):
            database.run(count_users)
        count = text("SELECT count(*) FROM pg_prepared_statements")
        assert database.run(lambda tx: tx.connection.execute(count).scalar_one())


def count_users(tx: Tx) -> int:
    return int(tx.connection.execute(text("SELECT count(*) FROM users")).scalar_one())


async def test_a_pooler_in_transaction_mode_needs_the_server_itself(
    migrated_postgres_url: str,
) -> None:
    settings = load(database_url=migrated_postgres_url)
    engine = make_engine(migrated_postgres_url, pooled=True)
    with closing(Database(engine, SetClock())) as database:
        with pytest.raises(BadSetting, match="transaction mode") as refused:
            async with open_bus(settings, database):
                pass
        assert "database_direct_url" in refused.value.hint
        direct = load(database_url=migrated_postgres_url, database_direct_url=migrated_postgres_url)
        async with open_bus(direct, database):
            pass


def test_a_check_asks_the_server_itself(migrated_postgres_url: str) -> None:
    nobody = "postgresql://nobody@127.0.0.1:1/none"

    assert check(load(database_url=nobody, database_direct_url=migrated_postgres_url)) == []


async def test_single_statements_have_the_settings_and_may_lock(migrated_postgres_url: str) -> None:
    engine = make_engine(migrated_postgres_url, pooled=True)
    with closing(Database(engine, SetClock())) as database:

        def look(tx: Tx) -> Sequence[str]:
            return tx.queue.waiting_profiles()

        def read_setting(tx: Tx) -> str:
            found: str = tx.connection.execute(text("SHOW lock_timeout")).scalar_one()
            return found

        assert await database.read(look, single=True) == []
        assert await database.read(read_setting, single=True) == "10s"
