"""Browsers that take push messages."""

from sqlalchemy import (
    Column,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from backburner.store.tables.base import metadata, owner
from backburner.store.types import Exact, Id, Time

push_subscriptions = Table(
    "push_subscriptions",
    metadata,
    owner(),
    Column("id", Id, primary_key=True),
    #: The browser session that it ends with.
    Column("session", Id, nullable=False),
    #: Of the endpoint.
    Column("digest", Exact, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("receiver_key", LargeBinary, nullable=False),
    Column("auth", LargeBinary, nullable=False),
    #: The public key of this server that it was made for.
    Column("server_key", LargeBinary, nullable=False),
    Column("label", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("sent_at", Time),
    Column("failed_at", Time),
    #: Why the last message was not taken.
    Column("error", Text),
    UniqueConstraint("user_id", "digest"),
    ForeignKeyConstraint(
        ["user_id", "session"], ["credentials.user_id", "credentials.id"], ondelete="CASCADE"
    ),
    # For the end of a session.
    Index("ix_push_subscriptions_of_session", "user_id", "session"),
)
