"""The owner comes first in every key: a user can live in any of several databases."""

from collections.abc import Iterator
from functools import partial

import pytest
from sqlalchemy import Connection, Inspector, UniqueConstraint, inspect, select, text
from support.stage.make import MATE, USER
from support.stage.scene import Scene

from backburner.core.conversation import Conversation, MessageRole, Source
from backburner.core.ids import MessageId
from backburner.core.transitions import NewMessage
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.tx import Tx

#: Keys of the install as a whole, with the reason.
EXCEPTIONS = {
    ("users", ("id",)): "the owner itself",
    ("users", ("login",)): "whoever signs in gives it, and nobody else may have it",
    ("credentials", ("digest",)): "says who the owner is",
    ("attempts", ("key",)): "an account or an address that somebody tries to sign in with",
    ("install", ("key",)): "a setting of the install",
    ("install_secrets", ("name",)): "a secret of the install itself",
    ("outages", ("profile",)): "a model that all users share",
    ("workers", ("name",)): "a process of the install",
    ("audit", ("id",)): "what operators did, whatever becomes of those it names",
}
#: Whose rows are numbered, and whose have an id of their own.
NUMBERED = {"messages", "events", "notices", "deliveries", "spend", "session_entries"}
WITH_ID = {
    *("conversations", "runs", "questions", "inbox", "tool_calls", "grants", "receipts"),
    "connections",
}

Key = tuple[str, tuple[str, ...]]


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


def declared_keys() -> Iterator[Key]:
    for table in tables.metadata.tables.values():
        yield table.name, tuple(table.primary_key.columns.keys())
        for constraint in table.constraints:
            if isinstance(constraint, UniqueConstraint):
                yield table.name, tuple(constraint.columns.keys())
        for index in table.indexes:
            if index.unique:
                yield table.name, tuple(index.columns.keys())


def real_keys(connection: Connection) -> Iterator[Key]:
    found: Inspector = inspect(connection)
    for name in tables.metadata.tables:
        yield name, tuple(found.get_pk_constraint(name)["constrained_columns"])
        for constraint in found.get_unique_constraints(name):
            yield name, tuple(constraint["column_names"])
        for index in found.get_indexes(name):
            if index["unique"]:
                yield name, tuple(str(column) for column in index["column_names"])


def assert_owner_is_first(keys: set[Key]) -> None:
    others = {key for key in keys if key[1][0] != "user_id"}
    assert others == EXCEPTIONS.keys()


def test_the_owner_is_first_in_every_key_that_is_declared() -> None:
    assert_owner_is_first(set(declared_keys()))


def test_the_owner_is_first_in_every_key_that_a_database_has(database: Database) -> None:
    found = database.run(lambda tx: set(real_keys(tx.connection)))

    assert found == set(declared_keys())
    assert_owner_is_first(found)


@pytest.mark.parametrize("name", sorted(NUMBERED | WITH_ID))
def test_rows_are_told_apart_by_owner_and_number_or_id(name: str) -> None:
    second = "number" if name in NUMBERED else "id"

    assert tuple(tables.metadata.tables[name].primary_key.columns.keys()) == ("user_id", second)


def test_a_reference_takes_the_owner_along() -> None:
    for table in tables.metadata.tables.values():
        for constraint in table.foreign_key_constraints:
            targets = [element.target_fullname for element in constraint.elements]
            assert constraint.column_keys[0] == "user_id", (table.name, targets)
            owner = "users.id" if len(targets) == 1 else f"{targets[1].partition('.')[0]}.user_id"
            assert targets[0] == owner, (table.name, targets)


def test_ids_have_the_same_order_on_both_databases(postgres: Database) -> None:
    wanted = {
        (table.name, column.name)
        for table in tables.metadata.tables.values()
        for column in table.columns
        if column.name == "id" or column.name.endswith("_id")
    }
    asked = text(
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = 'public' AND collation_name = 'C'"
    )
    found = postgres.run(lambda tx: {(row[0], row[1]) for row in tx.connection.execute(asked)})

    assert wanted <= found


def test_numbered_tables_are_known_to_whoever_restores_a_database() -> None:
    assert {table.name for table in tables.numbered} == NUMBERED
    assert {one.name for one in tables.metadata.tables.values() if "number" in one.c} == NUMBERED


def test_a_number_that_was_given_away_never_comes_back(scene: Scene) -> None:
    chat, other = scene.chat(), scene.chat()
    scene.say(chat)
    scene.say(other)
    last = numbers(scene)[-1]
    scene.run(lambda tx: tx.conversations.delete(USER, other.id))
    scene.say(chat)

    assert numbers(scene)[-1] > last
    assert len(numbers(scene)) == 2


def numbers(scene: Scene) -> list[int]:
    found = select(tables.messages.c.number).order_by(tables.messages.c.number)
    return scene.run(lambda tx: list(tx.connection.execute(found).scalars()))


def test_two_users_may_have_rows_with_the_same_id(scene: Scene) -> None:
    hello = NewMessage(
        role=MessageRole.USER, content="Hello.", source=Source.CHAT, id=MessageId("m_same")
    )

    def say(tx: Tx, chat: Conversation) -> None:
        tx.messages.append(chat.user_id, chat.id, [hello], run_id=None)

    for user in (USER, MATE):
        chat = scene.chat(user)
        scene.run(partial(say, chat=chat))

    found = select(tables.messages.c.user_id).where(tables.messages.c.id == "m_same")
    assert set(scene.run(lambda tx: tx.connection.execute(found).scalars().all())) == {USER, MATE}
