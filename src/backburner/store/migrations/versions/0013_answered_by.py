"""A question keeps by which credential it was answered."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("questions", sa.Column("answered_by", sa.Text))
