"""A report of an outage outlives its conversation, and keeps what was told."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"

TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")
ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    reports = sa.table("outage_reports", *map(sa.column, _COLUMNS))
    kept = [dict(row) for row in op.get_bind().execute(sa.select(reports)).mappings()]
    op.drop_table("outage_reports")
    op.create_table(
        "outage_reports",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("profile", sa.Text, nullable=False),
        sa.Column("conversation_id", ID, nullable=False),
        sa.Column("reported_at", TIME, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "profile", name=op.f("pk_outage_reports")),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_outage_reports_user_id"),
            ondelete="CASCADE",
        ),
    )
    if kept:
        # Told once more at most, if the access is denied.
        reports.append_column(sa.column("kind"))
        op.bulk_insert(reports, [row | {"kind": "unavailable"} for row in kept])


_COLUMNS = ("user_id", "profile", "conversation_id", "reported_at")
