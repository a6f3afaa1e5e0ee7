"""Marks of owners (seen, pinned, deleted), starts of runs, and notes that end questions.

Messages from before are no news, and questions that were open then count as seen.
"""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"

ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def upgrade() -> None:
    seen_number = sa.Column(
        "seen_number", sa.BigInteger, nullable=False, server_default=sa.text("0")
    )
    op.add_column("conversations", seen_number)
    op.add_column("conversations", sa.Column("seen_at", TIME))
    op.add_column("conversations", sa.Column("pinned_at", TIME))
    op.create_index(
        "ix_conversations_pinned",
        "conversations",
        ["user_id", "updated_at", "id"],
        postgresql_where=sa.text("pinned_at IS NOT NULL"),
        sqlite_where=sa.text("pinned_at IS NOT NULL"),
    )
    op.add_column("conversations", sa.Column("deleted_at", TIME))
    op.add_column("conversations", sa.Column("deleted_with", ID))
    was_archived = sa.Column("was_archived", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("conversations", was_archived)
    op.create_index(
        "ix_conversations_deleted",
        "conversations",
        ["deleted_at"],
        postgresql_where=sa.text("deleted_at IS NOT NULL"),
        sqlite_where=sa.text("deleted_at IS NOT NULL"),
    )
    news = sa.Column("news", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("messages", news)
    op.add_column("messages", sa.Column("closes", ID))
    op.add_column("runs", sa.Column("started_by", sa.Text))
    op.drop_index("ix_questions_of_conversation", "questions")
    columns = ["user_id", "conversation_id", "asked_at", "id"]
    op.create_index("ix_questions_of_conversation", "questions", columns)
    # SQLite has times as microseconds.
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    now = "strftime('%s', 'now') * 1000000" if is_sqlite else "now()"
    waiting = "status = 'waiting_input'"
    op.execute(f"UPDATE conversations SET seen_at = {now} WHERE {waiting}")  # noqa: S608
