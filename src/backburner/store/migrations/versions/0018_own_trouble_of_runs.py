"""A run keeps since when it has met trouble of its model that others did not."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def upgrade() -> None:
    op.add_column("runs", sa.Column("own_trouble_since", TIME))
