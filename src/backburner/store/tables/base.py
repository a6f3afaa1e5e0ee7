"""The naming of constraints, and columns and indexes that many tables have."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    MetaData,
    TextClause,
)
from sqlalchemy.schema import SchemaItem

from backburner.store.types import Id

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def owner() -> Column[str]:
    """Make the first column of a key: the user who owns the row."""
    return Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True)


def owner_of_conversation() -> Column[str]:
    """Make the first column of a key where the row belongs to a conversation or connection."""
    return Column("user_id", Id, primary_key=True)


def number() -> Column[int]:
    """Make the second column of a key: the number of a row among those of its owner.

    PostgreSQL has a sequence for each table, SQLite a row of `counters` for each user and table.
    Numbers of different users are never compared, and only those of events leave the store.
    """
    return Column("number", BigInteger, Identity(), primary_key=True)


def conversation_reference(*, is_key: bool = False) -> tuple[SchemaItem, ...]:
    """Make the reference to a conversation, with which the row is deleted."""
    return (
        Column("conversation_id", Id, nullable=False, primary_key=is_key),
        ForeignKeyConstraint(
            ["user_id", "conversation_id"],
            ["conversations.user_id", "conversations.id"],
            ondelete="CASCADE",
        ),
    )


def run_reference() -> tuple[SchemaItem, ...]:
    """Make the reference to a run as part of a key; the row is deleted with the run."""
    return (
        Column("run_id", Id, primary_key=True),
        ForeignKeyConstraint(
            ["user_id", "run_id"], ["runs.user_id", "runs.id"], ondelete="CASCADE"
        ),
    )


def partial_index(
    name: str, *columns: Column[Any], where: ColumnElement[bool] | TextClause, unique: bool = False
) -> Index:
    return Index(name, *columns, unique=unique, postgresql_where=where, sqlite_where=where)
