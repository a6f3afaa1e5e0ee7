"""Sign-ins to the servers of connections, and the leases of those who renew tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"

TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")
ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "started_sign_ins",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("connection_id", ID, nullable=False),
        sa.Column("digest", ID, nullable=False),
        sa.Column("session", sa.Text, nullable=False),
        sa.Column("command", sa.Text, nullable=False),
        sa.Column("arrived", sa.Boolean, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.UniqueConstraint("user_id", "digest", name=op.f("uq_started_sign_ins_user_id_digest")),
        *_of_connection("started_sign_ins"),
    )
    op.create_table(
        "token_leases",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("connection_id", ID, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("leased_until", TIME, nullable=False),
        *_of_connection("token_leases"),
    )


def _of_connection(table: str) -> tuple[sa.Constraint, ...]:
    return (
        sa.PrimaryKeyConstraint("user_id", "connection_id", name=op.f(f"pk_{table}")),
        sa.ForeignKeyConstraint(
            ["user_id", "connection_id"],
            ["connections.user_id", "connections.id"],
            name=op.f(f"fk_{table}_user_id_connection_id"),
            ondelete="CASCADE",
        ),
    )
