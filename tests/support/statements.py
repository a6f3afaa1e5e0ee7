"""Compiled statements that all databases of a test process share.

SQLAlchemy keeps them with each engine, and nearly every test has its own: compiling the same
statements again took a fifth of the time of all tests that use a database.
"""

from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import Dialect

_dialects: dict[type[Dialect], Dialect] = {}
_compiled: dict[Any, Any] = {}


def share_compiled_statements() -> None:
    event.listen(Engine, "engine_connect", _share)


def _share(connection: Connection) -> None:
    dialect = connection.dialect
    # The dialect is a part of the key.
    connection.dialect = _dialects.setdefault(type(dialect), dialect)
    connection.execution_options(compiled_cache=_compiled)
