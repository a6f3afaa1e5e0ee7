"""Where tasks are counted and found by name, what was dismissed, and what each run cost."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    for name, column, where in (
        ("at_work", "kind", "schedule IS NOT NULL"),
        ("titled", "title", "kind = 'task'"),
        ("dismissed", "ended_at", "ended_as = 'dismissed'"),
    ):
        op.create_index(
            f"ix_conversations_{name}",
            "conversations",
            ["user_id", column],
            postgresql_where=sa.text(where),
            sqlite_where=sa.text(where),
        )
    op.create_index("ix_spend_of_run", "spend", ["user_id", "run_id"])
