"""Opening a PostgreSQL database: what is refused in a sentence, and who waits for whom."""

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url
from support.doubles.clock import SetClock
from support.faults.postgres_proxy import Proxy, in_thread
from support.programs.programs import Start
from support.servers.postgres_server import postgres_server, somebody_waits

from backburner.core.errors import StoreFailed
from backburner.store.db import Database
from backburner.store.lifecycle.opening import open_database, write_something
from backburner.store.lifecycle.schema import MIGRATION_LOCK

#: Bait: it must not be shown anywhere.
PASSWORD = "correct-horse"  # noqa: S105 (it is the bait)


#: Opens a database in a process of its own.
OPEN = """
import sys
from backburner.store.lifecycle.opening import open_database
from support.doubles.clock import SetClock
open_database(sys.argv[1], SetClock()).close()
print("opened")
"""


def opened(url: str) -> closing[Database]:
    return closing(open_database(url, SetClock()))


def refusal(url: str) -> str:
    """Expect to be refused, in one line with advice, and without the password."""
    with pytest.raises(StoreFailed) as refused, opened(url):
        pass
    said = str(refused.value)
    assert refused.value.hint
    assert "\n" not in said
    assert PASSWORD not in said
    return said


def test_an_empty_postgresql_database_gets_its_tables_once(empty_postgres_url: str) -> None:
    for _ in range(2):
        with opened(empty_postgres_url) as database:
            database.run(write_something)


def test_tables_of_others_may_share_a_postgresql_database(empty_postgres_url: str) -> None:
    with psycopg.connect(empty_postgres_url) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    with opened(empty_postgres_url) as database:
        database.run(write_something)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("CREATE TABLE users (id TEXT)", "another program"),
        ("CREATE TABLE alembic_version AS SELECT '0001' AS version_num", "another program"),
        ("CREATE TABLE alembic_version AS SELECT 'a1b2' AS version_num", "another program"),
    ],
)
def test_a_postgresql_database_of_something_else_is_refused(
    empty_postgres_url: str, statement: str, said: str
) -> None:
    with psycopg.connect(empty_postgres_url) as connection:
        connection.execute(statement)

    assert said in refusal(empty_postgres_url)
    with psycopg.connect(empty_postgres_url) as connection:
        tables = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        assert tables.fetchone() == (1,)


def test_a_newer_postgresql_database_is_refused(migrated_postgres_url: str) -> None:
    with psycopg.connect(migrated_postgres_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")

    assert "newer Backburner" in refusal(migrated_postgres_url)


@pytest.mark.parametrize("revision", ["0001", "0009"])
def test_a_postgresql_database_of_an_alpha_version_is_refused(
    migrated_postgres_url: str, revision: str
) -> None:
    plant = "UPDATE alembic_version SET version_num = %s"
    with psycopg.connect(migrated_postgres_url) as connection:
        connection.execute(plant, [revision])

    assert "unreleased alpha version" in refusal(migrated_postgres_url)
    with psycopg.connect(migrated_postgres_url) as connection:
        found = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        assert found == [(revision,)]


def test_a_postgresql_that_does_not_answer_is_refused(tmp_path: Path) -> None:
    there = refusal(f"postgresql://me:{PASSWORD}@127.0.0.1:1/b")
    no_socket = refusal(f"postgresql://me:{PASSWORD}@/b?host={tmp_path}")
    name = refusal(f"postgresql://me:{PASSWORD}@{'a' * 300}/b")

    assert "PostgreSQL at 127.0.0.1:1 cannot be used: Connection refused." in there
    assert f"PostgreSQL at {tmp_path} cannot be used: No such file" in no_socket
    assert "cannot be used" in name


def test_a_postgresql_that_accepts_connections_and_never_answers_is_refused() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        port = silent.getsockname()[1]
        said = refusal(f"postgresql://me:{PASSWORD}@127.0.0.1:{port}/b?connect_timeout=2")

    assert "cannot be used: connection timeout expired." in said


def test_a_pooler_whose_server_never_answers_is_refused(migrated_postgres_url: str) -> None:
    proxy = Proxy(migrated_postgres_url)
    proxy.only_sign_in()
    with in_thread(proxy.url()) as url:
        said = refusal(f"{url}?connect_timeout=2")

    assert "cannot be used: it closed the connection or did not answer in time." in said


def test_an_option_that_postgresql_does_not_have_is_refused(own_postgres_url: str) -> None:
    said = refusal(f"{own_postgres_url}&colour=red")

    assert "colour" in said


@pytest.fixture
def user(own_postgres_url: str) -> Iterator[Callable[[str], str]]:
    """Make somebody with a password on our own server, and give the URL they have with another."""
    url = make_url(own_postgres_url).set(username="me", database="postgres")
    with psycopg.connect(own_postgres_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE me LOGIN PASSWORD 'battery-staple'")
        try:
            yield lambda password: url.set(password=password).render_as_string(hide_password=False)
        finally:
            connection.execute("DROP ROLE me")


def test_a_wrong_password_is_refused_and_not_shown(user: Callable[[str], str]) -> None:
    said = refusal(user(PASSWORD))

    assert "refused the sign-in of me: password authentication failed" in said


def test_a_user_who_may_not_make_tables_is_told_so(user: Callable[[str], str]) -> None:
    said = refusal(user("battery-staple"))

    assert "permission denied for schema public" in said
    assert "owner" in said


def test_a_database_that_is_not_there_is_refused(own_postgres_url: str) -> None:
    url = make_url(own_postgres_url).set(database="absent", password=PASSWORD)
    said = refusal(url.render_as_string(hide_password=False))

    assert "has no database absent." in said
    assert "createdb absent" in said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("ALTER DATABASE {} SET default_transaction_read_only = on", "is read-only"),
        ("UPDATE pg_database SET encoding = pg_char_to_encoding('LATIN1') WHERE datname = '{}'",
         "has the encoding LATIN1"),
    ],
)  # fmt: skip
def test_a_database_that_does_not_take_everything_is_refused(
    own_postgres_url: str, change: str, said: str
) -> None:
    with psycopg.connect(own_postgres_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE narrow TEMPLATE template0")
        connection.execute(change.format("narrow"))
        try:
            url = make_url(own_postgres_url).set(database="narrow")
            assert said in refusal(url.render_as_string(hide_password=False))
        finally:
            connection.execute("DROP DATABASE narrow WITH (FORCE)")


def test_a_server_that_only_follows_another_is_refused() -> None:
    with postgres_server(standby=True) as url:
        assert "is on a read-only standby server" in refusal(url)


def test_who_comes_while_another_migrates_waits_and_finds_it_done(empty_postgres_url: str) -> None:
    done: list[str] = []

    def wait() -> None:
        with opened(empty_postgres_url):
            done.append("opened")

    waiter = threading.Thread(target=wait)
    with psycopg.connect(empty_postgres_url, autocommit=True) as connection:
        connection.execute(f"SELECT pg_advisory_lock({MIGRATION_LOCK})")
        waiter.start()
        while not somebody_waits(connection):
            assert waiter.is_alive()
        assert done == []
    waiter.join()

    assert done == ["opened"]


def test_of_two_that_open_an_empty_database_at_once_both_succeed(
    empty_postgres_url: str, start: Start
) -> None:
    both = [start(empty_postgres_url, command=(sys.executable, "-c", OPEN)) for _ in range(2)]

    assert [running.end().out for running in both] == [["opened"], ["opened"]]
