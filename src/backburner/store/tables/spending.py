"""What was spent, and what may be."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from backburner.store.tables.base import metadata
from backburner.store.types import Counter, Time

#: What was spent, for ever: receipts outlive the conversation they are for.
spend = Table(
    "spend",
    metadata,
    Column("number", Counter, primary_key=True),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("conversation_id", Text, nullable=False),
    #: The conversation at the top of the tree, whose allowance counts.
    Column("root_id", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("micros", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("priced", Boolean, nullable=False),
    Column("spent_at", Time, nullable=False),
    Index("ix_spend_of_user", "user_id", "spent_at"),
    Index("ix_spend_of_root", "user_id", "root_id"),
    Index("ix_spend_of_run", "user_id", "run_id"),
)

#: The sums of what was spent, by what they are for: the user, one of their days, a conversation
#: with all it handed out, a run. Kept together with the rows they are the sums of.
totals = Table(
    "totals",
    metadata,
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE")),
    Column("what", Text),
    Column("micros", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    PrimaryKeyConstraint("user_id", "what"),
)

#: What may be spent, where it was said; elsewhere the settings say it.
allowances = Table(
    "allowances",
    metadata,
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE")),
    Column("scope", Text),
    #: Of a conversation's; empty for the others.
    Column("root_id", Text),
    Column("micros", BigInteger),
    Column("tokens", BigInteger),
    PrimaryKeyConstraint("user_id", "scope", "root_id"),
)
