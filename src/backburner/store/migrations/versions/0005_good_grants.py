"""What was allowed and still is can be found for all conversations of a user."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    is_good = sa.text("ended_at IS NULL")
    op.create_index(
        "ix_grants_good",
        "grants",
        ["user_id", "given_at", "id"],
        postgresql_where=is_good,
        sqlite_where=is_good,
    )
