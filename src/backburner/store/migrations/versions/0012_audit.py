"""Administrative acts are recorded."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")
ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", ID, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("actor", ID, nullable=False),
        sa.Column("act", sa.Text, nullable=False),
        sa.Column("user_id", ID),
        sa.Column("detail", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index("ix_audit_of_user", "audit", ["user_id", "id"])
