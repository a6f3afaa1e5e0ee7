"""The timeout of calls and the missing scopes of each connection, and whose tools grants are for.

Lasting grants are for the tools of one connection, and not of a later one of its name. Which one
those from before were given for is not known for certain: they end, and the next call asks. Grants
for one call name the connection in its digest.
"""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"

ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
#: In microseconds.
MINUTE = sa.text("60000000")
OLD_GRANTS = (
    "ended_at IS NULL AND call IS NULL AND EXISTS (SELECT 1 FROM connections c"
    " WHERE c.user_id = grants.user_id AND c.name = grants.server)"
)


def upgrade() -> None:
    timeout = sa.Column("call_timeout", sa.BigInteger, nullable=False, server_default=MINUTE)
    op.add_column("connections", timeout)
    for name in ("wanted_scopes", "refused_scopes"):
        column = sa.Column(name, sa.Text, nullable=False, server_default="")
        op.add_column("connections", column)
    op.add_column("grants", sa.Column("connection_id", ID))
    # SQLite has times as microseconds.
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    now = "strftime('%s', 'now') * 1000000" if is_sqlite else "now()"
    op.execute(f"UPDATE grants SET ended_at = {now} WHERE {OLD_GRANTS}")  # noqa: S608
