"""The run whose agent set up work: it is stopped if the message that asked for it is replaced."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"

ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("conversations", sa.Column("set_up_by", ID))
