"""Tool calls on connections, with a record of them that outlives their runs.

Runs that wait for their owner to sign in to a connection.
"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"

TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")
ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column(
        "tool_calls",
        sa.Column("repeatable", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.add_column("tool_calls", sa.Column("connection_id", ID))
    op.add_column("runs", sa.Column("connection_id", ID))
    op.create_table(
        "connection_calls",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("connection_id", ID, nullable=False),
        sa.Column("server", sa.Text, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("conversation_id", ID, nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("ended_at", TIME, nullable=False),
        sa.CheckConstraint(
            "outcome IN ('done', 'failed', 'unknown')", name=op.f("ck_connection_calls_outcome")
        ),
        sa.PrimaryKeyConstraint("user_id", "id", name=op.f("pk_connection_calls")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_connection_calls_user_id"), ondelete="CASCADE"
        ),
    )
    op.create_index("ix_connection_calls_started_at", "connection_calls", ["started_at"])
