"""Many rows of a table."""

from sqlalchemy import Connection, Table, text

from backburner.core.ids import UserId

_NUMBERS = (
    "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)"
)
#: Other rows: they differ from the one that they are copies of in whatever is unique.
_CHANGED = {"id": "t.id || CAST(n AS text)", "number": "1000 + n", "key": "'k' || n"}


def multiply(connection: Connection, table: Table, user: UserId, count: int, **more: str) -> None:
    """Make many rows of one that is there."""
    changed = {name: sql for name, sql in _CHANGED.items() if name in table.c} | more
    values = {column.name: changed.get(column.name, f"t.{column.name}") for column in table.columns}
    connection.execute(
        text(
            f"{_NUMBERS} INSERT INTO {table.name} ({', '.join(values)})"  # noqa: S608
            f" SELECT {', '.join(values.values())} FROM numbers,"
            f" (SELECT * FROM {table.name} WHERE user_id = :owner LIMIT 1) AS t"
        ),
        {"count": count, "owner": user},
    )
