"""The conversation of a token, under which its jobs hang; and all jobs of a user in order."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("credentials", sa.Column("conversation_id", sa.Text))
    is_job = sa.text("kind = 'job'")
    op.create_index(
        "ix_conversations_jobs",
        "conversations",
        ["user_id", "updated_at", "id"],
        postgresql_where=is_job,
        sqlite_where=is_job,
    )
