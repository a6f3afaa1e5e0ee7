"""A tool call keeps in which cage it was made."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.add_column("tool_calls", sa.Column("cage", sa.Text))
