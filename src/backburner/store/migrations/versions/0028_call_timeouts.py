"""The timeout of calls, of each connection. Those that there are keep a minute, in microseconds."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    minute = sa.text("60000000")
    op.add_column(
        "connections",
        sa.Column("call_timeout", sa.BigInteger, nullable=False, server_default=minute),
    )
