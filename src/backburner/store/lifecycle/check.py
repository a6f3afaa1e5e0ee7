"""Checks the invariants of a database, which hold whatever happened to its processes."""

from typing import Final

from sqlalchemy import Connection, text

from backburner.store.dialect import check_pages, use_snapshot

#: Rows that are named for each kind of fault.
MAX_NAMED_ROWS = 5

#: Queries that must find no rows.
FAULT_QUERIES: Final = {
    "a successful run without the proof of its commit": (
        "SELECT r.id FROM runs r WHERE r.status = 'success' AND NOT EXISTS"
        " (SELECT 1 FROM outcomes o"
        " WHERE o.user_id = r.user_id AND o.run_id = r.id AND o.epoch = r.epoch)"
    ),
    "a run that both committed and crashed": (
        "SELECT r.id FROM runs r JOIN outcomes o"
        " ON o.user_id = r.user_id AND o.run_id = r.id AND o.epoch = r.epoch"
        " WHERE r.failure_kind = 'crashed'"
    ),
    "a running run without its turn, or two in one conversation": (
        "SELECT r.id FROM runs r JOIN conversations c"
        " ON c.id = r.conversation_id AND c.user_id = r.user_id"
        " WHERE r.status = 'running'"
        " AND (c.turn_run IS NULL OR c.turn_run <> r.id OR c.epoch <> r.epoch)"
    ),
    "a turn whose run is not running": (
        "SELECT c.id FROM conversations c LEFT JOIN runs r"
        " ON r.user_id = c.user_id AND r.id = c.turn_run"
        " WHERE c.turn_run IS NOT NULL AND (r.status IS NULL OR r.status <> 'running')"
    ),
    "an unfinished call in a run that is not running": (
        "SELECT t.id FROM tool_calls t JOIN runs r ON r.user_id = t.user_id AND r.id = t.run_id"
        " WHERE t.state = 'started' AND r.status <> 'running'"
    ),
    "a total that is not the sum of its receipts": (
        "SELECT t.what FROM totals t WHERE t.what NOT LIKE 'day:%' AND t.tokens <>"
        " (SELECT coalesce(sum(s.tokens), 0) FROM spend s WHERE s.user_id = t.user_id AND"
        " t.what IN ('user', 'run:' || s.run_id, 'conversation:' || s.root_id))"
    ),
    "receipts that are in no total": (
        "SELECT s.user_id FROM spend s GROUP BY s.user_id HAVING sum(s.tokens) <>"
        " (SELECT coalesce(sum(t.tokens), 0) FROM totals t"
        " WHERE t.user_id = s.user_id AND t.what LIKE 'day:%')"
    ),
}


def find_faults(connection: Connection) -> list[str]:
    """Describe all faults; this reads the whole database."""
    use_snapshot(connection)
    # Rows of damaged pages prove nothing.
    return check_pages(connection) or [
        f"There is {what}: {', '.join(ids)}."
        for what, query in FAULT_QUERIES.items()
        if (ids := _first_ids(connection, query))
    ]


def _first_ids(connection: Connection, query: str) -> list[str]:
    rows = connection.execute(text(query)).fetchmany(MAX_NAMED_ROWS)
    return [str(row_id) for (row_id,) in rows]
