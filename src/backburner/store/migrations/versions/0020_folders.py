"""Folders that users have added, and the folder in which a conversation works."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"

TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")
ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
IN_USE = "turn_run IS NOT NULL AND folder IS NOT NULL AND "


def upgrade() -> None:
    op.create_table(
        "folders",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("path", ID, nullable=False),
        sa.Column("machine", ID, nullable=False),
        sa.Column("machine_name", sa.Text, nullable=False),
        sa.Column("read_only", sa.Boolean, nullable=False),
        sa.Column("from_settings", sa.Boolean, nullable=False),
        sa.Column("instructions", sa.Text, nullable=False),
        sa.Column("reported", sa.Text, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "path", "machine", name=op.f("pk_folders")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_folders_user_id"), ondelete="CASCADE"
        ),
    )
    op.add_column("conversations", sa.Column("folder", sa.Text))
    op.add_column("conversations", sa.Column("folder_machine", sa.Text))
    op.add_column(
        "conversations",
        sa.Column("folder_read_only", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    due = "status = 'background' AND next_run_at IS NOT NULL AND turn_run IS NULL"
    where = sa.text(f"{due} AND folder IS NOT NULL")
    op.create_index(
        "ix_conversations_due_in_folder",
        "conversations",
        ["next_run_at"],
        postgresql_where=where,
        sqlite_where=where,
    )
    op.create_index(
        "uq_conversations_folder_in_use",
        "conversations",
        ["user_id", "folder", "folder_machine"],
        unique=True,
        postgresql_where=sa.text(f"{IN_USE}NOT folder_read_only"),
        sqlite_where=sa.text(f"{IN_USE}folder_read_only = 0"),
    )
