"""Times from which the waiting for a model is counted: own trouble, and resumptions."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def upgrade() -> None:
    op.add_column("runs", sa.Column("own_trouble_since", TIME))
    op.add_column("users", sa.Column("resumed_at", TIME))
