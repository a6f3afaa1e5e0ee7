"""What users are told, and what changed for those who watch."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    text,
)

from backburner.store.tables.base import metadata, of_a_conversation
from backburner.store.types import Counter, Time

notices = Table(
    "notices",
    metadata,
    Column("number", Counter, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    *of_a_conversation(),
    Column("run_id", Text),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("question_id", Text),
    Column("created_at", Time, nullable=False),
    Column("seen_at", Time),
    Index("ix_notices_of_user", "user_id", "number"),
    # A number that was given away never comes back, also not after a deletion.
    sqlite_autoincrement=True,
)

#: One row for each part that goes out on a channel.
deliveries = Table(
    "deliveries",
    metadata,
    Column("number", Counter, primary_key=True),
    #: The same part of the same notice is never put in twice.
    Column("key", Text, nullable=False, unique=True),
    *of_a_conversation(),
    Column("notice_id", Text, nullable=False),
    Column("channel", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("part", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("not_before", Time, nullable=False),
    Column("leased_until", BigInteger),
    Column("lease", BigInteger, nullable=False),
    Column("provider_id", Text),
    Column("error", Text),
    CheckConstraint("state IN ('waiting', 'sending', 'sent', 'failed')", name="state"),
    # For what goes when a conversation goes.
    Index("ix_deliveries_of_conversation", "user_id", "conversation_id"),
)
to_send = text("state IN ('waiting', 'sending')")
Index(
    "ix_deliveries_to_send",
    deliveries.c.not_before,
    postgresql_where=to_send,
    sqlite_where=to_send,
)

#: What changed, for those who watch.
events = Table(
    "events",
    metadata,
    Column("number", Counter, primary_key=True),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("conversation_id", Text),
    Column("kind", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Index("ix_events_of_user", "user_id", "number"),
    Index("ix_events_created_at", "created_at"),
    # A number that was given away never comes back, also not after a deletion.
    sqlite_autoincrement=True,
)
