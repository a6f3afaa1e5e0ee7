"""The files that messages have."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    op.add_column("messages", sa.Column("files", sa.Text))
    op.create_index(
        "ix_messages_with_files",
        "messages",
        ["user_id", "conversation_id", "number"],
        postgresql_where=sa.text("files IS NOT NULL"),
        sqlite_where=sa.text("files IS NOT NULL"),
    )
