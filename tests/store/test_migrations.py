"""The revisions of the tables: what they add up to, and what becomes of the data on the way."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    DateTime,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    inspect,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError
from support.doubles.clock import SetClock

from backburner.core.errors import StoreFailed
from backburner.store.dialect import make_engine
from backburner.store.lifecycle.opening import open_database
from backburner.store.lifecycle.schema import (
    MIGRATIONS,
    OUR_VERSIONS,
    bring_up_to_date,
    find_revision,
    known_revisions,
)
from backburner.store.tables import metadata

#: By table, each row by column.
Rows = dict[str, list[dict[str, Any]]]

ROOT = Path(__file__).parents[2]

#: What PostgreSQL knows of its tables: columns, constraints and indexes, as it would write them.
DEFINITIONS = """
    SELECT c.relname, row_number() OVER (PARTITION BY c.oid ORDER BY a.attnum)
           || ' ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
           || ' ' || a.attnotnull || ' ' || coalesce(pg_get_expr(d.adbin, d.adrelid), '')
           || ' ' || a.attidentity::text || ' ' || a.attcollation::regcollation::text
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
           AND NOT a.attisdropped
      LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
    UNION ALL SELECT conrelid::regclass::text, conname || ' ' || pg_get_constraintdef(oid)
      FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public'
"""

#: A revision as one will be written some day: it makes a table anew, adds one, and moves data.
NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "{number}"
down_revision = "{before}"

def upgrade():
    op.create_table("planted", sa.Column("id", sa.Text, primary_key=True))
    op.execute("INSERT INTO planted SELECT id FROM users")
    op.execute("UPDATE conversations SET title = 'moved'")
    with op.batch_alter_table("conversations", recreate="auto") as table:
        table.add_column(sa.Column("colour", sa.Text, nullable=False, server_default="red"))
        table.alter_column("title", new_column_name="heading")
    {last}
"""
NUMBER = f"{int(known_revisions(OUR_VERSIONS)[-1]) + 1:04}"


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'backburner.sqlite3'}"
    url: str = request.getfixturevalue("empty_postgres_url")
    return url


@pytest.fixture
def engine(empty_url: str) -> Iterator[Engine]:
    engine = make_engine(empty_url)
    yield engine
    engine.dispose()


def plant(folder: Path, last: str = "pass") -> Path:
    """Write the next revision, which ends with some statement."""
    folder.mkdir()
    before = known_revisions(OUR_VERSIONS)[-1]
    source = NEXT.format(number=NUMBER, before=before, last=last)
    (folder / f"{NUMBER}_planted.py").write_text(source)
    return folder


def definitions(connection: Connection) -> dict[str, set[str]]:
    """Tell all that a database has been told about its tables; in which order, only of columns."""
    if connection.dialect.name == "sqlite":
        rows = connection.execute(text("SELECT tbl_name, sql FROM sqlite_master WHERE sql > ''"))
        pairs = [(table, part.strip()) for table, sql in rows for part in re.split("[,\n]", sql)]
        columns = {
            name: [column["name"] for column in inspect(connection).get_columns(name)]
            for name in inspect(connection).get_table_names()
        }
        pairs += [(name, f"columns: {names}") for name, names in columns.items()]
    else:
        pairs = [(str(table), said) for table, said in connection.execute(text(DEFINITIONS))]
    found: dict[str, set[str]] = {}
    for table, said in pairs:
        found.setdefault(table, set()).add(said)
    return found


def test_the_revisions_add_up_to_the_tables(engine: Engine) -> None:
    bring_up_to_date(engine)
    with engine.begin() as connection:
        # What it does not compare, the next test does.
        context = MigrationContext.configure(connection)

        assert compare_metadata(context, metadata) == []


def test_every_column_constraint_and_condition_of_an_index_is_the_same(engine: Engine) -> None:
    with engine.begin() as connection:
        metadata.create_all(connection)
        expected = definitions(connection)
        metadata.drop_all(connection)
    bring_up_to_date(engine)
    with engine.begin() as connection:
        found = definitions(connection)

    del found["alembic_version"]
    assert any("WHERE" in said for said in found["inbox"])
    assert found == expected


def test_the_revisions_are_one_line_numbered_in_order() -> None:
    script = ScriptDirectory(str(MIGRATIONS))
    revisions = [revision.revision for revision in script.walk_revisions()][::-1]

    assert revisions == known_revisions(OUR_VERSIONS)
    # The first nine were those of alpha versions: no number of theirs is used again.
    assert revisions == [f"{number:04}" for number in range(10, len(revisions) + 10)]
    assert script.get_heads() == revisions[-1:]


def test_data_of_every_revision_lasts_through_all_later_ones(
    engine: Engine, tmp_path: Path
) -> None:
    versions = (*OUR_VERSIONS, plant(tmp_path / "next"))
    before: Rows = {}
    for count, revision in enumerate(known_revisions(versions), 1):
        bring_up_to_date(engine, versions=(first(count, versions, tmp_path / revision),))
        with engine.begin() as connection:
            assert find_revision(connection) == revision
            tables = reflect(connection)
            assert_kept(before, read(connection, tables))
            fill(connection, revision, tables)
            before = read(connection, tables)
            assert all(before.values())


def test_lasting_grants_for_the_first_words_of_commands_end_and_their_users_are_told(
    engine: Engine, tmp_path: Path
) -> None:
    bring_up_to_date(engine, versions=(first(1, OUR_VERSIONS, tmp_path / "before"),))
    old = {"server": "backburner", "tool": "run_command", "call": None, "words": '["git"]'}
    rows = [
        {"id": "g_one", **old},
        {"id": "g_two", **old, "server": "claude", "tool": "Bash"},
        {"id": "g_once", **old, "call": "digest"},
        {"id": "g_host", **old, "tool": "fetch_url"},
    ]
    with engine.begin() as connection:
        fill(connection, "1")
        tables = {table.name: table for table in reflect(connection)}
        # A number that the next notice must not have.
        connection.execute(tables["notices"].delete())
        connection.execute(tables["counters"].delete())
        counter = {"user_id": "1", "name": "notices", "last": 7}
        connection.execute(tables["counters"].insert().values(counter))
        for row in rows:
            common = {"user_id": "1", "conversation_id": "1", "definition": "", "whole": False}
            given_at = some_value(tables["grants"].c.given_at, "1", [])
            connection.execute(tables["grants"].insert().values(**common, **row, given_at=given_at))
    bring_up_to_date(engine)

    with engine.begin() as connection:
        after = read(connection)
    assert {row["id"] for row in after["grants"] if row["ended_at"] is None} >= {"g_once", "g_host"}
    assert {row["id"] for row in after["grants"] if row["ended_at"] is not None} >= {
        "g_one",
        "g_two",
    }
    (told,) = [row for row in after["notices"] if row["id"] == "n_one"]
    assert (told["user_id"], told["conversation_id"], told["seen_at"]) == ("1", "1", None)
    assert "you are asked again" in told["text"]
    if engine.dialect.name == "sqlite":
        assert told["number"] == 8
        assert {row["last"] for row in after["counters"] if row["name"] == "notices"} == {8}


def test_work_that_tokens_handed_out_over_mcp_has_no_memories(
    engine: Engine, tmp_path: Path
) -> None:
    bring_up_to_date(engine, versions=(first(4, OUR_VERSIONS, tmp_path / "before"),))
    local = "command line of this machine"
    places = {"editor": "c_editor", "idle": None, local: "c_local"}
    parents = {"c_job": "c_editor", "c_below": "c_job", "c_own": "c_local"}
    rows: list[tuple[str, dict[str, Any]]] = [
        *(("conversations", {"id": one, "parent_id": None}) for one in ("c_editor", "c_local")),
        *(("conversations", {"id": one, "parent_id": of}) for one, of in parents.items()),
        *(
            ("credentials", {"digest": one, "id": one, "name": one, "conversation_id": place})
            for one, place in places.items()
        ),
    ]
    with engine.begin() as connection:
        fill(connection, "1")
        tables = {table.name: table for table in reflect(connection)}
        for name, changes in rows:
            limits = inspect(connection).get_check_constraints(name)
            row = {one.name: some_value(one, "1", limits) for one in tables[name].columns}
            kind = {"kind": "token" if name == "credentials" else "chat"}
            connection.execute(tables[name].insert().values(row | changes | kind))
    bring_up_to_date(engine)

    with engine.begin() as connection:
        after = read(connection)
    others = {row["id"] for row in after["conversations"] if row["uses"] is None}
    assert others == {"1", "c_local", "c_own"}
    restricted = {row["id"] for row in after["conversations"] if row["uses"] == ""}
    assert restricted == {"c_editor", "c_job", "c_below"}
    assert {row["uses"] for row in after["credentials"]} == {""}


def test_lasting_grants_for_tools_of_connections_end(engine: Engine, tmp_path: Path) -> None:
    bring_up_to_date(engine, versions=(first(18, OUR_VERSIONS, tmp_path / "before"),))
    mail = {"server": "mail", "tool": "send", "call": None}
    rows = [
        {"id": "g_lasting", **mail},
        {"id": "g_once", **mail, "call": "digest"},
        {"id": "g_own", **mail, "server": "backburner", "tool": "fetch_url"},
        # Of another user, who has no connection of that name.
        {"id": "g_other", **mail, "user_id": "2", "conversation_id": "2"},
    ]
    with engine.begin() as connection:
        fill(connection, "1")
        fill(connection, "2")
        tables = {table.name: table for table in reflect(connection)}
        owned = tables["connections"].c.user_id == "1"
        connection.execute(tables["connections"].update().where(owned).values(name="mail"))
        limits = inspect(connection).get_check_constraints("grants")
        usual = {one.name: some_value(one, "1", limits) for one in tables["grants"].columns}
        for row in rows:
            connection.execute(tables["grants"].insert().values(usual | {"ended_at": None} | row))
    bring_up_to_date(engine)

    with engine.begin() as connection:
        after = read(connection)["grants"]
    kept = {row["id"] for row in after if row["ended_at"] is None}
    assert kept == {"g_once", "g_own", "g_other"}
    (ended,) = [row for row in after if row["id"] == "g_lasting"]
    at = ended["ended_at"]
    if engine.dialect.name == "sqlite":
        at = datetime.fromtimestamp(at / 1_000_000, UTC)
    assert abs(datetime.now(UTC) - at) < timedelta(days=1)


def assert_kept(before: Rows, after: Rows) -> None:
    """Compare what is in tables and columns that are still there."""
    for table in before.keys() & after.keys():
        columns = before[table][0].keys() & after[table][0].keys()
        kept, had = (
            sorted(({name: row[name] for name in columns} for row in rows), key=repr)
            for rows in (after[table], before[table])
        )
        assert kept == had, table


def first(count: int, versions: tuple[Path, ...], folder: Path) -> Path:
    """Copy the first revisions: what an older Backburner had."""
    folder.mkdir()
    files = [file for one in versions for file in one.glob("[0-9]*.py")]
    for file in sorted(files, key=lambda file: file.name)[:count]:
        shutil.copy(file, folder)
    return folder


def reflect(connection: Connection) -> list[Table]:
    found = MetaData()
    found.reflect(connection)
    return [table for table in found.sorted_tables if table.name != "alembic_version"]


def read(connection: Connection, tables: list[Table] | None = None) -> Rows:
    return {
        table.name: [dict(row) for row in connection.execute(select(table)).mappings()]
        for table in tables or reflect(connection)
    }


def fill(connection: Connection, word: str, tables: list[Table] | None = None) -> None:
    """Put a row into every table there is; with one word everywhere, all of them fit together."""
    inspector = inspect(connection)
    for table in tables or reflect(connection):
        limits = inspector.get_check_constraints(table.name)
        row = {column.name: some_value(column, word, limits) for column in table.columns}
        connection.execute(table.insert().values(row))


def some_value(column: Column[Any], word: str, limits: list[Any]) -> object:
    if isinstance(column.type, DateTime):
        return datetime(2026, 11, 16, tzinfo=UTC)
    if isinstance(column.type, Boolean):
        return True
    if isinstance(column.type, LargeBinary):
        return word.encode()
    if isinstance(column.type, BigInteger | Integer):
        return int(word)
    for limit in limits:
        if re.search(rf"\b{column.name}\b.*(?:IN|ANY)", limit["sqltext"]):
            allowed: str = re.findall(r"'(\w+)'", limit["sqltext"])[-1]
            return allowed
    return word


def test_results_of_runs_become_text_and_keep_their_json(engine: Engine, tmp_path: Path) -> None:
    bring_up_to_date(engine, versions=(first(11, OUR_VERSIONS, tmp_path / "before"),))
    results = {"r_text": '"All \\"green\\"."', "r_object": '{"ok":true}', "r_none": None}
    with engine.begin() as connection:
        fill(connection, "1")
        (runs,) = [table for table in reflect(connection) if table.name == "runs"]
        limits = inspect(connection).get_check_constraints("runs")
        usual = {one.name: some_value(one, "1", limits) for one in runs.columns}
        for run_id, result in results.items():
            changes = {"id": run_id, "status": "success", "result": result}
            connection.execute(runs.insert().values(usual | changes))
    bring_up_to_date(engine)

    with engine.begin() as connection:
        after = {row["id"]: (row["result"], row["data"]) for row in read(connection)["runs"]}
    assert after["r_text"] == ('All "green".', results["r_text"])
    assert after["r_object"] == (results["r_object"], results["r_object"])
    assert after["r_none"] == (None, None)


def test_messages_that_wait_keep_the_profile_that_they_asked_for(
    engine: Engine, tmp_path: Path
) -> None:
    bring_up_to_date(engine, versions=(first(12, OUR_VERSIONS, tmp_path / "before"),))
    unserved = {"served_at": None, "served_by": None}
    demo, local = ({"content": f'{{"profile": "{name}"}}'} for name in ("demo", "local"))
    #: By conversation: its items, in their order.
    waiting: dict[str, list[dict[str, Any]]] = {
        "c_two": [{**unserved, **demo}, {**unserved, **local}],
        "c_handed_back": [{"served_by": "r_queued", **local}],
        "c_answered": [{"served_by": "1", **local}],
        "c_words": [{**unserved, "content": '{"text": "\\"profile\\": local"}'}],
    }
    with engine.begin() as connection:
        fill(connection, "1")
        tables = {table.name: table for table in reflect(connection)}

        def add(name: str, **values: object) -> None:
            limits = inspect(connection).get_check_constraints(name)
            usual = {one.name: some_value(one, "1", limits) for one in tables[name].columns}
            connection.execute(tables[name].insert().values(usual | values))

        for which, items in waiting.items():
            add("conversations", id=which, turn_run=None, turn_until=None)
            for number, item in enumerate(items):
                key = {"id": f"{which}_{number}", "dedupe_key": f"{which}_{number}"}
                add("inbox", **key, conversation_id=which, run_kind="reply", **item)
        add("runs", id="r_queued", conversation_id="c_handed_back", status="queued")
    bring_up_to_date(engine)

    with engine.begin() as connection:
        after = {row["id"]: row["reply_profile"] for row in read(connection)["conversations"]}
    expected = {"c_two": "local", "c_handed_back": "local", "c_answered": "", "c_words": ""}
    assert after == {"1": "", **expected}


def test_a_revision_that_fails_leaves_everything_as_it_was_and_once_repaired_succeeds(
    empty_url: str, tmp_path: Path
) -> None:
    def look(*versions: Path) -> tuple[Rows, dict[str, set[str]]]:
        database = open_database(empty_url, SetClock(), versions=(*OUR_VERSIONS, *versions))
        with closing(database):
            return database.run(lambda tx: (read(tx.connection), definitions(tx.connection)))

    with closing(open_database(empty_url, SetClock())) as database:
        database.run(lambda tx: fill(tx.connection, "1"))
    before = look()
    with pytest.raises(DBAPIError, match="nowhere"):
        look(plant(tmp_path / "broken", last="op.execute('INSERT INTO nowhere VALUES (1)')"))

    assert look() == before

    rows, _ = look(plant(tmp_path / "repaired"))
    assert rows.pop("planted") == [{"id": "1"}]
    assert rows["conversations"][0]["heading"] == "moved"
    assert rows["conversations"][0]["colour"] == "red"
    assert_kept(before[0], rows)


def test_a_revision_that_would_leave_rows_without_an_owner_is_undone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'backburner.sqlite3'}"
    with closing(open_database(url, SetClock())) as database:
        database.run(lambda tx: fill(tx.connection, "1"))
    careless = plant(tmp_path / "careless", last="op.execute('DELETE FROM users')")
    with pytest.raises(StoreFailed, match="dangling references"):
        open_database(url, SetClock(), versions=(*OUR_VERSIONS, careless))

    with closing(open_database(url, SetClock())) as database:
        assert len(database.run(lambda tx: read(tx.connection))["users"]) == 1


def test_foreign_keys_hold_again_after_a_migration(empty_url: str) -> None:
    with closing(open_database(empty_url, SetClock())) as database:
        database.run(lambda tx: fill(tx.connection, "1"))
        database.run(lambda tx: tx.connection.execute(text("DELETE FROM users")))
        left = database.run(lambda tx: tx.connection.execute(text("SELECT id FROM runs")).all())

    assert left == []


def test_in_a_checkout_alembic_itself_finds_nothing_to_write(migrated_sqlite_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "alembic", "-x", f"url={migrated_sqlite_url}", "check"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout) == (0, "No new upgrade operations detected.\n"), done


def test_nothing_from_before_is_unseen(engine: Engine, tmp_path: Path) -> None:
    bring_up_to_date(engine, versions=(first(19, OUR_VERSIONS, tmp_path / "before"),))
    with engine.begin() as connection:
        fill(connection, "1")
        tables = {table.name: table for table in reflect(connection)}
        connection.execute(tables["conversations"].update().values(status="waiting_input"))
    bring_up_to_date(engine)

    with engine.begin() as connection:
        after = read(connection)
    assert [row["news"] for row in after["messages"]] in ([0], [False])
    (conversation,) = after["conversations"]
    assert conversation["seen_number"] == 0
    # The question that was open.
    assert conversation["seen_at"] is not None
