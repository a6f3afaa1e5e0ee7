"""How long sessions are, whether words of others were read, and which profile did a run."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column(
        "conversations",
        sa.Column("session_tokens", sa.Integer, nullable=False, server_default=sa.text("0")),
    )
    op.add_column(
        "conversations",
        sa.Column("outside_read", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.add_column("runs", sa.Column("profile", sa.Text))
    op.add_column("runs", sa.Column("escalated_from", sa.Text))
