"""Statements that the driver executes directly: the same rows, and the same errors."""

import gc
import weakref
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Executable, bindparam, delete, event, insert, select, text, tuple_, update
from sqlalchemy.exc import IntegrityError, MultipleResultsFound, NoResultFound
from support.people.users import add_user

from backburner.core.ids import UserId
from backburner.store.compiled import MAX_LIST_LENGTH, Rows
from backburner.store.db import Database
from backburner.store.tables import users
from backburner.store.tx import Tx

ANN, BEN, CYD = UserId("u_ann"), UserId("u_ben"), UserId("u_cyd")
AT = datetime(2030, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _people(database: Database) -> None:
    for user in (ANN, BEN, CYD):
        database.run(lambda tx, user=user: add_user(tx, user, name=user[2:], now=AT))  # type: ignore[misc]


def execute_often(database: Database, statement: Executable, values: dict[str, Any]) -> list[Any]:
    """Execute a statement by SQLAlchemy first, and then directly."""

    def work(tx: Tx) -> list[Any]:
        results = [tx.connection.execute(statement, values) for _ in range(3)]
        assert [isinstance(result, Rows) for result in results] == [False, True, True]
        return [result.all() for result in results]

    return database.run(work)


def test_rows_are_the_same_whoever_executes_a_statement(database: Database) -> None:
    statement = select(users).where(users.c.id == bindparam("id"), users.c.name == "ann")
    first, *others = execute_often(database, statement, {"id": ANN})
    (row,) = first
    for (other,) in others:
        assert tuple(other) == tuple(row)
        assert other._mapping == dict(row._mapping)
        assert (other.id, other.created_at, other.paused) == (ANN, AT, False)


@pytest.mark.parametrize("names", [[], ["ann"], ["ann", "cyd", "dan"]])
def test_a_list_may_have_another_length_each_time(database: Database, names: list[str]) -> None:
    is_named = users.c.name.in_(bindparam("names", expanding=True))
    statement = select(users.c.name).where(is_named).order_by(users.c.name)
    execute_often(database, statement, {"names": ["ben"]})
    found = database.run(lambda tx: tx.connection.execute(statement, {"names": names}).all())
    assert [row.name for row in found] == [name for name in names if name != "dan"]


def test_a_list_may_have_tuples(database: Database) -> None:
    is_one = tuple_(users.c.id, users.c.name).in_(bindparam("pairs", expanding=True))
    statement = select(users.c.name).where(is_one).order_by(users.c.name)
    pairs = [(ANN, "ann"), (BEN, "cyd"), (CYD, "cyd")]
    for rows in execute_often(database, statement, {"pairs": pairs}):
        assert [tuple(row) for row in rows] == [("ann",), ("cyd",)]


def test_long_lists_are_left_to_sqlalchemy(database: Database) -> None:
    statement = select(users.c.id).where(users.c.id.in_(bindparam("ids", expanding=True)))
    execute_often(database, statement, {"ids": [ANN]})
    values = {"ids": [ANN] * (MAX_LIST_LENGTH + 1)}
    result: Any = database.run(lambda tx: tx.connection.execute(statement, values))
    assert not isinstance(result, Rows)


def test_a_statement_is_compiled_for_the_parameters_that_it_is_given(database: Database) -> None:
    statement = update(users).where(users.c.id == bindparam("which"))

    def work(tx: Tx) -> list[Any]:
        for _ in range(3):
            changed = tx.connection.execute(statement, {"which": ANN, "name": "Ann"})
            assert changed.rowcount == 1
            tx.connection.execute(statement, {"which": ANN, "served_at": AT + timedelta(days=1)})
        return list(tx.connection.execute(select(users.c.name, users.c.served_at)).all())

    assert ("Ann", AT + timedelta(days=1)) in [tuple(row) for row in database.run(work)]


def test_an_error_is_that_of_sqlalchemy_and_the_next_transaction_works(database: Database) -> None:
    statement = insert(users)
    row = database.run(lambda tx: dict(tx.connection.execute(select(users)).all()[0]._mapping))
    for number in range(3):
        row["id"] = f"u_{number}"
        database.run(lambda tx: tx.connection.execute(statement, row))
    with pytest.raises(IntegrityError):
        database.run(lambda tx: tx.connection.execute(statement, row))
    found = database.run(lambda tx: tx.connection.execute(delete(users), {}).rowcount)
    assert found == 6


def test_listeners_see_every_statement(database: Database) -> None:
    statement = select(users.c.name)
    execute_often(database, statement, {})
    seen = list[str]()
    event.listen(database.engine, "before_cursor_execute", lambda *args: seen.append(args[2]))
    database.run(lambda tx: tx.connection.execute(statement).all())
    assert len(seen) == 1


def test_text_has_the_names_that_the_database_gives(database: Database) -> None:
    statement = text("SELECT id, name AS called FROM users WHERE id = :id")
    for rows in execute_often(database, statement, {"id": ANN}):
        assert [(row.id, row.called) for row in rows] == [(ANN, "ann")]


def test_results_are_read_like_those_of_sqlalchemy() -> None:
    none, one, two = Rows([], 0), Rows([(1, 2)], 1), Rows([(1,), (3,)], 2)
    assert (none.first(), none.scalar(), none.one_or_none(), none.scalar_one_or_none()) == (
        *(None, None, None, None),
    )
    assert (one.one(), one.scalar_one(), list(two.scalars())) == ((1, 2), 1, [1, 3])
    with pytest.raises(NoResultFound):
        none.one()
    with pytest.raises(MultipleResultsFound):
        two.one_or_none()
    with pytest.raises(MultipleResultsFound):
        two.scalar_one_or_none()


def test_a_statement_begins_a_transaction_if_nobody_has(database: Database) -> None:
    statement = select(users.c.name)
    execute_often(database, statement, {})
    with database.engine.connect() as connection:
        connection.execute(statement)
        assert connection.in_transaction()


def test_transactions_that_only_read_are_executed_directly_too(database: Database) -> None:
    statement = select(users.c.name)
    execute_often(database, statement, {})
    for single in (False, True):
        found: list[Any] = [
            database.read_here(lambda tx: tx.connection.execute(statement), single=single)
            for _ in range(3)
        ]
        assert isinstance(found[-1], Rows)


def test_statements_that_are_built_for_some_executions_are_not_kept(database: Database) -> None:
    statement = select(users.c.name).where(users.c.id.in_(bindparam("ids", expanding=True)))
    execute_often(database, statement, {"ids": [ANN, BEN]})
    kept = weakref.ref(statement)
    del statement
    # SQLAlchemy keeps a number of them itself.
    database.engine.clear_compiled_cache()
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("length", [3, 5, 9])
def test_lists_of_a_statement_itself_may_have_any_length(database: Database, length: int) -> None:
    """Only those that are passed are filled up."""
    names = ["ann", *(f"nobody {number}" for number in range(length - 1))]
    alone = select(users.c.name).where(users.c.name.in_(names))
    with_other = alone.where(users.c.id.in_(bindparam("ids", expanding=True)))
    for rows in (
        *execute_often(database, alone, {}),
        *execute_often(database, with_other, {"ids": [ANN, BEN, CYD]}),
    ):
        assert [tuple(row) for row in rows] == [("ann",)]
