"""A tool call keeps in which cage it was made."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.add_column("tool_calls", sa.Column("cage", sa.Text))
