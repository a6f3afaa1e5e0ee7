"""When each part of a run began and what its prompt was; tokens written by models.

An index for what a run has served.
"""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"

TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def upgrade() -> None:
    op.add_column("outcomes", sa.Column("began_at", TIME))
    op.add_column("outcomes", sa.Column("prompt", sa.Text))
    op.add_column("runs", sa.Column("resumed_at", TIME))
    for name in ("output_tokens", "cached_tokens"):
        op.add_column("spend", sa.Column(name, sa.BigInteger))
    is_served = sa.text("served_by IS NOT NULL")
    op.create_index(
        "ix_inbox_served_by",
        "inbox",
        ["user_id", "served_by"],
        postgresql_where=is_served,
        sqlite_where=is_served,
    )
