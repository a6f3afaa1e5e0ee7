"""Push subscriptions of browsers; the kind of a notice and its title in each delivery.

The texts of deliveries from before begin with the title, and go on without it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"

TIME = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")
ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "push_subscriptions",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("session", ID, nullable=False),
        sa.Column("digest", ID, nullable=False),
        sa.Column("endpoint", sa.Text, nullable=False),
        sa.Column("receiver_key", sa.LargeBinary, nullable=False),
        sa.Column("auth", sa.LargeBinary, nullable=False),
        sa.Column("server_key", sa.LargeBinary, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("sent_at", TIME),
        sa.Column("failed_at", TIME),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("user_id", "id", name=op.f("pk_push_subscriptions")),
        sa.UniqueConstraint("user_id", "digest", name=op.f("uq_push_subscriptions_user_id_digest")),
        sa.ForeignKeyConstraint(
            ["user_id", "session"],
            ["credentials.user_id", "credentials.id"],
            name=op.f("fk_push_subscriptions_user_id_session"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_push_subscriptions_user_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        "ix_push_subscriptions_of_session", "push_subscriptions", ["user_id", "session"]
    )
    for name, default in (("kind", "result"), ("title", "")):
        column = sa.Column(name, sa.Text, nullable=False, server_default=default)
        op.add_column("deliveries", column)
