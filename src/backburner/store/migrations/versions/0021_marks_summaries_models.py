"""Marks of outside text, summaries, agents, progress, zones, and what notices carry.

Results of runs were JSON, and are text now; the JSON has a column of its own.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")
ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
AS_TEXT = {"sqlite": "json_extract(result, '$')", "postgresql": "CAST(result AS json) #>> '{}'"}


def upgrade() -> None:
    for table, columns in _new_columns().items():
        for column in columns:
            op.add_column(table, column)
    _create_summaries()
    _list_jobs_apart()
    _prefer_running()
    op.execute("UPDATE runs SET data = result WHERE result IS NOT NULL")
    as_text = AS_TEXT[op.get_bind().dialect.name]
    op.execute(f"UPDATE runs SET result = {as_text} WHERE result LIKE '\"%\"'")  # noqa: S608
    op.execute("UPDATE users SET zone_source = 'user' WHERE zone <> 'UTC'")


def _new_columns() -> dict[str, tuple[sa.Column[Any], ...]]:
    return {
        "conversations": (
            sa.Column("agent", sa.Text),
            sa.Column("session_missed_since", TIME),
            _flag("summarized"),
            sa.Column("outside_state", sa.Text, nullable=False, server_default="[]"),
            sa.Column("fresh_at", TIME),
        ),
        "messages": (sa.Column("shows", ID),),
        "questions": (_flag("outside"),),
        "runs": (
            sa.Column("data", sa.Text),
            _flag("outside"),
            sa.Column("progress", sa.Text),
            sa.Column("progress_at", TIME),
        ),
        "notices": (
            sa.Column("message", sa.Text),
            sa.Column("options", sa.Text, nullable=False, server_default="[]"),
        ),
        "deliveries": (sa.Column("address", sa.Text, nullable=False, server_default=""),),
        "users": (sa.Column("zone_source", sa.Text, nullable=False, server_default="none"),),
    }


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false())


def _create_summaries() -> None:
    op.create_table(
        "summaries",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("conversation_id", ID, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("messages", sa.Text, nullable=False),
        sa.Column("outside", sa.Boolean, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "conversation_id", name=op.f("pk_summaries")),
        sa.ForeignKeyConstraint(
            ["user_id", "conversation_id"],
            ["conversations.user_id", "conversations.id"],
            name=op.f("fk_summaries_user_id_conversation_id"),
            ondelete="CASCADE",
        ),
    )


def _list_jobs_apart() -> None:
    """Leave jobs out of the index of listed conversations; they have one of their own."""
    op.drop_index("ix_conversations_listed", "conversations")
    op.create_index(
        "ix_conversations_listed",
        "conversations",
        ["user_id", "updated_at", "id"],
        postgresql_where=sa.text("kind != 'job'"),
        sqlite_where=sa.text("kind != 'job'"),
    )


def _prefer_running() -> None:
    """Make the index of running runs anew: of two that fit alike, SQLite takes the last one."""
    op.drop_index("uq_runs_running", "runs")
    op.create_index(
        "uq_runs_running",
        "runs",
        ["user_id", "conversation_id"],
        unique=True,
        postgresql_where=sa.text("status = 'running'"),
        sqlite_where=sa.text("status = 'running'"),
    )
