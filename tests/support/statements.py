"""The statements that a database executes, and the tables that it scans for them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from backburner.store import tables
from backburner.store.db import Database
from backburner.store.dialect import is_sqlite


@contextmanager
def watched(database: Database) -> Iterator[list[tuple[str, Any]]]:
    """Note every statement that is executed, with its values."""
    seen: list[tuple[str, Any]] = []

    def note(_conn: Any, _cursor: Any, statement: str, values: Any, *_more: Any) -> None:
        seen.append((statement, values))

    # On PostgreSQL the one is a part of the other.
    engines = (
        {database.engine, database.reading} if is_sqlite(database.engine) else {database.engine}
    )
    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", note)


def scans(database: Database, statement: str, values: Any) -> list[str]:
    """Name the tables that a database would read from one end to the other."""
    explain = "EXPLAIN QUERY PLAN" if is_sqlite(database.engine) else "EXPLAIN"
    rows = database.run(
        lambda tx: tx.connection.exec_driver_sql(f"{explain} {statement}", values).all()
    )
    found = re.findall(r"(?:Seq Scan on|SCAN) (\w+)", "\n".join(str(row[-1]) for row in rows))
    return [name for name in found if name in tables.metadata.tables]
