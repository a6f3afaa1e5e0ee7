"""Tools that their owner has turned off, the calls of one connection by their time, and the
conversations of a folder.
"""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    off = sa.Column("off", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("connection_tools", off)
    columns = ["user_id", "connection_id", "started_at"]
    op.create_index("ix_connection_calls_of_connection", "connection_calls", columns)
    has_folder = sa.text("folder IS NOT NULL")
    op.create_index(
        "ix_conversations_of_folder",
        "conversations",
        ["user_id", "folder", "id"],
        postgresql_where=has_folder,
        sqlite_where=has_folder,
    )
