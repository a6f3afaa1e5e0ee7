"""Where jobs were asked for, who waits for them, and when a run was last heard of."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def upgrade() -> None:
    for name in ("parent_run_id", "parent_message_id", "root_id"):
        op.add_column("conversations", sa.Column(name, sa.Text))
    op.add_column(
        "conversations",
        sa.Column("keeps_only", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    is_open_job = sa.text(
        "root_id IS NOT NULL AND (schedule IS NOT NULL OR status = 'waiting_input')"
    )
    op.create_index(
        "ix_conversations_open_jobs",
        "conversations",
        ["user_id", "root_id"],
        postgresql_where=is_open_job,
        sqlite_where=is_open_job,
    )
    op.add_column("runs", sa.Column("drafted_at", TIME))
    op.create_index(
        "ix_tool_calls_of_conversation", "tool_calls", ["user_id", "conversation_id", "started_at"]
    )
    op.create_table(
        "waits",
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("conversation_id", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("job_id", sa.Text, nullable=False),
        sa.Column("settled_at", TIME),
        sa.ForeignKeyConstraint(
            ["user_id", "conversation_id"],
            ["conversations.user_id", "conversations.id"],
            name=op.f("fk_waits_user_id_conversation_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_waits_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "job_id", name=op.f("pk_waits")),
    )
    op.create_index("ix_waits_of_job", "waits", ["user_id", "job_id"])
    op.create_index("ix_waits_of_conversation", "waits", ["user_id", "conversation_id"])
