"""Until when a model in an outage counts as tried, and since when a run waits for its model."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"

TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def upgrade() -> None:
    rows = op.get_bind().execute(sa.text("SELECT outages.*, until AS tried_until FROM outages"))
    kept = [dict(row) for row in rows.mappings()]
    # SQLite adds no column that is not null.
    op.drop_table("outages")
    outages = op.create_table(
        "outages",
        sa.Column("profile", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("since", TIME, nullable=False),
        sa.Column("until", TIME, nullable=False),
        sa.Column("probes", sa.Integer, nullable=False),
        sa.Column("tried_until", TIME, nullable=False),
        sa.Column("answered_at", TIME),
        sa.PrimaryKeyConstraint("profile", name=op.f("pk_outages")),
    )
    op.bulk_insert(outages, kept)
    op.add_column("runs", sa.Column("waits_since", TIME))
