"""Sealed secrets of users and of the install, and the wrapped keys that seal them."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"

ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "data_keys",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("wrapped", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_data_keys")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_data_keys_user_id"), ondelete="CASCADE"
        ),
    )
    op.create_table(
        "secrets",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("name", ID, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "name", name=op.f("pk_secrets")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_secrets_user_id"), ondelete="CASCADE"
        ),
    )
    op.create_table(
        "install_secrets",
        sa.Column("name", ID, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_install_secrets")),
    )
