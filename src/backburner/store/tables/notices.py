"""Notices, their deliveries, and the log of events."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from backburner.store.tables.base import (
    conversation_reference,
    metadata,
    number,
    owner,
    owner_of_conversation,
    partial_index,
)
from backburner.store.types import Id, Time

notices = Table(
    "notices",
    metadata,
    owner_of_conversation(),
    number(),
    Column("id", Id, nullable=False),
    *conversation_reference(),
    Column("run_id", Id),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("question_id", Id),
    Column("created_at", Time, nullable=False),
    Column("seen_at", Time),
    #: Of a question: the message that came with it, and its options.
    Column("message", Text),
    Column("options", Text, nullable=False, server_default="[]"),
    UniqueConstraint("user_id", "id"),
    # For the cascade when a conversation is deleted.
    Index("ix_notices_of_conversation", "user_id", "conversation_id"),
)
is_unseen = notices.c.seen_at.is_(None)
partial_index("ix_notices_unseen", notices.c.user_id, notices.c.number, where=is_unseen)

#: One row for each part that is sent on a channel.
deliveries = Table(
    "deliveries",
    metadata,
    owner_of_conversation(),
    number(),
    #: Unique, so that a part of a notice is never sent twice.
    Column("key", Text, nullable=False),
    *conversation_reference(),
    Column("notice_id", Id, nullable=False),
    Column("channel", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("part", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("not_before", Time, nullable=False),
    Column("leased_until", BigInteger),
    Column("lease", BigInteger, nullable=False),
    Column("provider_id", Id),
    Column("error", Text),
    #: The page to open for it, on the server.
    Column("address", Text, nullable=False, server_default=""),
    Column("kind", Text, nullable=False, server_default="result"),
    #: The title of the conversation; empty where the text begins with it.
    Column("title", Text, nullable=False, server_default=""),
    CheckConstraint("state IN ('waiting', 'sending', 'sent', 'failed')", name="state"),
    UniqueConstraint("user_id", "key"),
    # For the cascade when a conversation is deleted.
    Index("ix_deliveries_of_conversation", "user_id", "conversation_id"),
)
is_unsent = text("state IN ('waiting', 'sending')")
partial_index("ix_deliveries_to_send", deliveries.c.not_before, where=is_unsent)
partial_index("ix_deliveries_failed", deliveries.c.not_before, where=text("state = 'failed'"))

#: The users who were told about an outage, and have not been told about its end.
outage_reports = Table(
    "outage_reports",
    metadata,
    owner(),
    Column("profile", Text, primary_key=True),
    #: No reference: nobody is told again because they deleted it.
    Column("conversation_id", Id, nullable=False),
    Column("reported_at", Time, nullable=False),
    Column("kind", Text, nullable=False),
)

events = Table(
    "events",
    metadata,
    owner(),
    #: From `counters` on both databases: see `store.events`.
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("conversation_id", Id),
    Column("kind", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Index("ix_events_created_at", "created_at"),
)
