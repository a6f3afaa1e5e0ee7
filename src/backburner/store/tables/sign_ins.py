"""Sign-ins to the servers of connections that were started, and who is renewing which tokens.

What is secret of either is in the vault.
"""

from sqlalchemy import Boolean, Column, ForeignKeyConstraint, Table, Text, UniqueConstraint

from backburner.store.tables.base import metadata, owner_of_conversation
from backburner.store.types import Exact, Id, Time


def _of_connection(table: str, *columns: Column[object]) -> Table:
    """Make a table with one row for a connection, which is deleted with it."""
    return Table(
        table,
        metadata,
        owner_of_conversation(),
        Column("connection_id", Id, primary_key=True),
        *columns,
        ForeignKeyConstraint(
            ["user_id", "connection_id"],
            ["connections.user_id", "connections.id"],
            ondelete="CASCADE",
        ),
    )


started_sign_ins = _of_connection(
    "started_sign_ins",
    #: The digest of the state in the address that its user goes to.
    Column("digest", Exact, nullable=False),
    #: One of them is empty: the browser session that has started it, or the digest of the secret
    #: that a command in a terminal keeps.
    Column("session", Text, nullable=False),
    Column("command", Text, nullable=False),
    #: The final address has arrived, and the command may finish it.
    Column("arrived", Boolean, nullable=False),
    Column("expires_at", Time, nullable=False),
)
started_sign_ins.append_constraint(UniqueConstraint("user_id", "digest"))

token_leases = _of_connection(
    "token_leases",
    Column("holder", Text, nullable=False),
    Column("leased_until", Time, nullable=False),
)
