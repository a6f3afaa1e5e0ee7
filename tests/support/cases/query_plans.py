"""The query plan of a statement."""

from typing import Any

from sqlalchemy import CompoundSelect, Select

from backburner.store.db import Database


def plan(database: Database, statement: Select[Any] | CompoundSelect[Any]) -> list[str]:
    """Return the query plan of SQLite; it does not depend on the values."""
    compiled = statement.compile(
        dialect=database.engine.dialect, compile_kwargs={"render_postcompile": True}
    )
    explain, values = f"EXPLAIN QUERY PLAN {compiled}", (None,) * len(compiled.positiontup or ())
    rows = database.run(lambda tx: tx.connection.exec_driver_sql(explain, values).all())
    return [row[3] for row in rows]


def explain(database: Database, statement: str, values: Any) -> list[str]:
    """Return the query plan of SQLite for a statement as it was executed."""
    rows = database.run(
        lambda tx: tx.connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
    )
    return [row[3] for row in rows]
