"""Scopes that the servers of connections want besides, and those that a sign-in did not get."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    for name in ("wanted_scopes", "refused_scopes"):
        column = sa.Column(name, sa.Text, nullable=False, server_default="")
        op.add_column("connections", column)
