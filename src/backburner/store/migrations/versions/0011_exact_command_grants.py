"""Lasting grants for commands are for exact lines.

Those for the first words of a command covered too much. They end, and their users are told.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

TEXT = (
    "Commands run without the network now, and then need no approval. What you allowed here for"
    " good by the first words of a command has ended: you are asked again when a command needs the"
    " network."
)
OLD_GRANTS = (
    "ended_at IS NULL AND call IS NULL AND words <> '[]'"
    " AND (server, tool) IN (('backburner', 'run_command'), ('claude', 'Bash'))"
)
#: SQLite does not number these rows, and has times as microseconds.
NUMBER = (
    "coalesce((SELECT last FROM counters c WHERE c.user_id = grants.user_id"
    " AND c.name = 'notices'), 0) + row_number() OVER (PARTITION BY user_id)"
)
NOW = "strftime('%s', 'now') * 1000000"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _tell("number, ", f"{NUMBER}, ", NOW)
        op.execute(
            "INSERT INTO counters (user_id, name, last)"  # noqa: S608
            " SELECT user_id, 'notices', max(number) FROM notices"
            f" WHERE user_id IN (SELECT user_id FROM grants WHERE {OLD_GRANTS}) GROUP BY user_id"
            " ON CONFLICT (user_id, name) DO UPDATE SET last = max(last, excluded.last)"
        )
        op.execute(f"UPDATE grants SET ended_at = {NOW} WHERE {OLD_GRANTS}")  # noqa: S608
    else:
        _tell("", "", "now()")
        op.execute(f"UPDATE grants SET ended_at = now() WHERE {OLD_GRANTS}")  # noqa: S608
    op.drop_column("grants", "whole")


def _tell(column: str, value: str, now: str) -> None:
    """Put one notice into each conversation that has such grants."""
    insert = sa.text(
        f"INSERT INTO notices (user_id, {column}id, conversation_id, kind, text, created_at)"  # noqa: S608
        f" SELECT user_id, {value}'n' || substr(min(id), 2), conversation_id, 'stopped', :text,"
        f" {now} FROM grants WHERE {OLD_GRANTS} GROUP BY user_id, conversation_id"
    )
    op.get_bind().execute(insert, {"text": TEXT})
