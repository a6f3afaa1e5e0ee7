"""Tables for operators: workers, failures, and the browsers that are signed in."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"

ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "workers",
        sa.Column("name", ID, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.Column("seats", sa.Integer, nullable=False),
        sa.Column("seats_used", sa.Integer, nullable=False),
        sa.Column("draining", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_workers")),
    )
    _index("ix_runs_failed", "runs", "ended_at", "status = 'failure'")
    _index("ix_deliveries_failed", "deliveries", "not_before", "state = 'failed'")
    _index("ix_connections_signed_out", "connections", "last_error_at", "state = 'signed_out'")
    device = sa.Column("device", sa.Text, nullable=False, server_default="")
    op.add_column("credentials", device)


def _index(name: str, table: str, column: str, where: str) -> None:
    condition = sa.text(where)
    op.create_index(name, table, [column], postgresql_where=condition, sqlite_where=condition)
