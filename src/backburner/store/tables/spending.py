"""Receipts of spending, their totals, and allowances."""

from sqlalchemy import BigInteger, Boolean, Column, Index, Table, Text

from backburner.store.tables.base import metadata, number, owner
from backburner.store.types import Id, Time

#: Receipts of model calls; they outlive their conversation.
spend = Table(
    "spend",
    metadata,
    owner(),
    number(),
    Column("conversation_id", Id, nullable=False),
    #: The root of the conversation's tree, whose allowance counts.
    Column("root_id", Id, nullable=False),
    Column("run_id", Id, nullable=False),
    Column("model", Text, nullable=False),
    Column("micros", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("priced", Boolean, nullable=False),
    Column("spent_at", Time, nullable=False),
    #: Of the tokens: those that the model wrote, and those that it read from its cache.
    Column("output_tokens", BigInteger),
    Column("cached_tokens", BigInteger),
    Index("ix_spend_of_user", "user_id", "spent_at"),
    Index("ix_spend_of_root", "user_id", "root_id"),
    Index("ix_spend_of_run", "user_id", "run_id"),
)

#: Sums of receipts for a user, a day, a conversation with its jobs, or a run, updated in the
#: transaction that stores the receipt.
totals = Table(
    "totals",
    metadata,
    owner(),
    Column("what", Text, primary_key=True),
    Column("micros", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
)

#: In place of a root: the most that an operator allows the user.
CEILING = "operator"
#: Allowances that users have set; the settings have the defaults.
allowances = Table(
    "allowances",
    metadata,
    owner(),
    Column("scope", Text, primary_key=True),
    #: Empty unless the scope is a conversation, or an operator has set it.
    Column("root_id", Id, primary_key=True),
    Column("micros", BigInteger),
    Column("tokens", BigInteger),
)
