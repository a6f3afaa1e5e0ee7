"""How a database would go about a statement."""

from typing import Any

from sqlalchemy import Select

from backburner.store.db import Database


def plan(database: Database, statement: Select[Any]) -> list[str]:
    """Ask SQLite how it would go about it; what the values are makes no difference."""
    asked = statement.compile(
        dialect=database.engine.dialect, compile_kwargs={"render_postcompile": True}
    )
    explain, values = f"EXPLAIN QUERY PLAN {asked}", (None,) * len(asked.positiontup or ())
    rows = database.run(lambda tx: tx.connection.exec_driver_sql(explain, values).all())
    return [row[3] for row in rows]
