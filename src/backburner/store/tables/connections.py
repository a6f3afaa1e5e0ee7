"""Connections of users to MCP servers, and their tools. Secrets are in a table of their own."""

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKeyConstraint,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

from backburner.store.tables.base import metadata, owner, owner_of_conversation, partial_index
from backburner.store.types import Duration, Exact, Id, Time

connections = Table(
    "connections",
    metadata,
    owner(),
    Column("id", Id, primary_key=True),
    Column("name", Exact, nullable=False),
    Column("title", Text, nullable=False),
    #: One of them is empty.
    Column("url", Text, nullable=False),
    Column("program", Text, nullable=False),
    Column("auth", Text, nullable=False),
    #: The names of headers whose values are secret, as JSON.
    Column("headers", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("catalogue", Text, nullable=False),
    Column("disabled", Boolean, nullable=False),
    Column("in_chats", Boolean, nullable=False),
    Column("sign_in_revision", Integer, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("listed_at", Time),
    Column("expires_at", Time),
    Column("last_used_at", Time),
    Column("last_error", Text, nullable=False),
    Column("last_error_at", Time),
    Column("call_timeout", Duration, nullable=False, server_default=text("60000000")),
    Column("wanted_scopes", Text, nullable=False, server_default=""),
    Column("refused_scopes", Text, nullable=False, server_default=""),
    UniqueConstraint("user_id", "name"),
)
partial_index(
    "ix_connections_signed_out",
    connections.c.last_error_at,
    where=text("state = 'signed_out'"),
)

connection_tools = Table(
    "connection_tools",
    metadata,
    owner_of_conversation(),
    Column("connection_id", Id, primary_key=True),
    Column("name", Exact, primary_key=True),
    #: As last listed, and as accepted, as JSON.
    Column("definition", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("accepted_definition", Text),
    Column("accepted", Text, nullable=False),
    Column("reported", Text, nullable=False),
    #: By the catalogue.
    Column("read_only", Boolean, nullable=False),
    Column("repeatable", Boolean, nullable=False),
    Column("discloses", Boolean, nullable=False),
    #: By the owner; null: undecided.
    Column("ticked_read_only", Boolean),
    Column("ticked_repeatable", Boolean),
    Column("gone", Boolean, nullable=False),
    #: By the owner: agents do not get it.
    Column("off", Boolean, nullable=False, server_default=false()),
    ForeignKeyConstraint(
        ["user_id", "connection_id"], ["connections.user_id", "connections.id"], ondelete="CASCADE"
    ),
)
