"""Engines of conversations, messages taken back, what may be spent, and the switch for all."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def upgrade() -> None:
    op.add_column("conversations", sa.Column("engine", sa.Text, nullable=False, server_default=""))
    parked = sa.text("pause_reason = 'allowance'")
    op.create_index(
        "ix_conversations_parked",
        "conversations",
        ["user_id"],
        postgresql_where=parked,
        sqlite_where=parked,
    )
    _make_indexes_anew()
    op.create_index("ix_runs_ended_at", "runs", ["ended_at"])
    op.add_column("messages", sa.Column("replaced_at", TIME))
    op.add_column("tool_calls", sa.Column("definition", sa.Text, nullable=False, server_default=""))
    op.add_column(
        "tool_calls", sa.Column("failed", sa.Boolean, nullable=False, server_default=sa.false())
    )
    _create_totals()
    _create_allowances()
    op.create_table(
        "install",
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_install")),
    )


def _make_indexes_anew() -> None:
    queued = sa.text("status = 'queued'")
    op.drop_index("ix_runs_queued", "runs")
    for name, columns in {
        "ix_runs_queued": ["wait_until"],
        "ix_runs_queued_of_user": ["user_id", "wait_until"],
    }.items():
        op.create_index(name, "runs", columns, postgresql_where=queued, sqlite_where=queued)
    op.drop_index("ix_tool_calls_of_run", "tool_calls")
    op.create_index("ix_tool_calls_of_run", "tool_calls", ["user_id", "run_id"])


def _create_totals() -> None:
    op.create_table(
        "totals",
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("micros", sa.BigInteger, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_totals_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "what", name=op.f("pk_totals")),
    )


def _create_allowances() -> None:
    op.create_table(
        "allowances",
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("root_id", sa.Text, nullable=False),
        sa.Column("micros", sa.BigInteger),
        sa.Column("tokens", sa.BigInteger),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_allowances_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "scope", "root_id", name=op.f("pk_allowances")),
    )
