"""What was spent, and what may be."""

from sqlalchemy import BigInteger, Boolean, Column, Index, Table, Text

from backburner.store.tables.base import metadata, number, owner
from backburner.store.types import Id, Time

#: What was spent, for ever: receipts outlive the conversation they are for.
spend = Table(
    "spend",
    metadata,
    owner(),
    number(),
    Column("conversation_id", Id, nullable=False),
    #: The conversation at the top of the tree, whose allowance counts.
    Column("root_id", Id, nullable=False),
    Column("run_id", Id, nullable=False),
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
    owner(),
    Column("what", Text, primary_key=True),
    Column("micros", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
)

#: What may be spent, where it was said; elsewhere the settings say it.
allowances = Table(
    "allowances",
    metadata,
    owner(),
    Column("scope", Text, primary_key=True),
    #: Of a conversation's; empty for the others.
    Column("root_id", Id, primary_key=True),
    Column("micros", BigInteger),
    Column("tokens", BigInteger),
)
