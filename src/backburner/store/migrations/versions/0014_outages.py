"""Outages of models, and the users who were told about them."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")
ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "outages",
        sa.Column("profile", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("since", TIME, nullable=False),
        sa.Column("until", TIME, nullable=False),
        sa.Column("probes", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("profile", name=op.f("pk_outages")),
    )
    op.create_table(
        "outage_reports",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("profile", sa.Text, nullable=False),
        sa.Column("conversation_id", ID, nullable=False),
        sa.Column("reported_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "profile", name=op.f("pk_outage_reports")),
        sa.ForeignKeyConstraint(
            ["user_id", "conversation_id"],
            ["conversations.user_id", "conversations.id"],
            name=op.f("fk_outage_reports_user_id_conversation_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        "ix_outage_reports_of_conversation", "outage_reports", ["user_id", "conversation_id"]
    )
