"""Accounts, what they sign in with, answers to requests that may come twice, and a longer log."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def upgrade() -> None:
    op.add_column("users", sa.Column("login", sa.Text))
    op.add_column("users", sa.Column("password", sa.Text))
    op.add_column("users", sa.Column("role", sa.Text, nullable=False, server_default="member"))
    op.add_column("users", sa.Column("disabled_at", TIME))
    op.add_column("users", sa.Column("away_since", TIME))
    op.create_index("uq_users_login", "users", ["login"], unique=True)
    for name in ("questions", "deliveries"):
        op.create_index(f"ix_{name}_of_conversation", name, ["user_id", "conversation_id"])
    op.create_table(
        "credentials",
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False, server_default=""),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME),
        sa.Column("used_at", TIME),
        sa.Column("ended_at", TIME),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_credentials_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_credentials")),
    )
    op.create_index("uq_credentials_id", "credentials", ["user_id", "id"], unique=True)
    op.create_table(
        "attempts",
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("since", TIME, nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_attempts")),
    )
    op.create_table(
        "answers",
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("body", sa.Text),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_answers_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "key", name=op.f("pk_answers")),
    )
    op.create_index("ix_answers_created_at", "answers", ["created_at"])
    op.create_table(
        "receipts",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("conversation_id", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("server", sa.Text, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("arguments", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("failed", sa.Boolean, nullable=False),
        sa.Column("grant_id", sa.Text),
        sa.Column("result", sa.Text),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_receipts_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_receipts")),
    )
    op.create_index("ix_receipts_of_user", "receipts", ["user_id", "started_at"])
    op.drop_index("ix_conversations_listed", "conversations")
    op.create_index("ix_conversations_listed", "conversations", ["user_id", "updated_at", "id"])
    op.create_index("ix_events_created_at", "events", ["created_at"])
    has_ended = sa.text("ended_at IS NOT NULL")
    op.create_index(
        "ix_runs_of_user",
        "runs",
        ["user_id", "ended_at"],
        postgresql_where=has_ended,
        sqlite_where=has_ended,
    )
