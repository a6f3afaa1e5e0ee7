"""Statements that SQLAlchemy compiles once, and that the driver executes from then on.

For each execution SQLAlchemy looks the statement up in its cache, and makes a context, a cursor and
a result: more work than everything else that is done with a row. Statements are built once in this
package, so what SQLAlchemy made of one is kept with it.
"""

from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import chain
from typing import Any, cast
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Dialect, Executable, NestedTransaction
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import MultipleResultsFound, NoResultFound
from sqlalchemy.sql.compiler import SQLCompiler

#: Each length of a list is a statement of its own, so there are only these: a list is filled up by
#: its last value, which makes no difference to IN. Longer ones are left to SQLAlchemy.
LIST_LENGTHS = (0, 1, 2, 4, 8, 12)
MAX_LIST_LENGTH = LIST_LENGTHS[-1]

#: The option of a statement that will be executed often: it is compiled for good at once.
IS_KEPT = "is_kept"

Processor = Callable[[Any], Any]
_STATEMENT_EVENTS = (
    "before_execute",
    "after_execute",
    "before_cursor_execute",
    "after_cursor_execute",
)


@dataclass(slots=True)
class CompiledStatement:
    """The SQL of a statement, how its parameters are passed, and how its rows are read."""

    sql: str
    #: The parameters in their order, and the values that the statement itself has for some.
    names: Sequence[str]
    constants: Mapping[str, Any]
    binders: Sequence[tuple[int, Processor]]
    #: The parameters that each value of a list becomes.
    lists: Mapping[str, Sequence[str]]
    #: Name and type of each column; None: text does not tell.
    columns: Sequence[tuple[str, Any]] | None
    #: Set when it has been executed, and the driver has described its rows.
    returns_rows: bool | None = None
    make_row: Callable[[Iterable[Any]], Any] = tuple
    readers: Sequence[tuple[int, Processor]] = ()

    def bind(self, values: Mapping[str, Any]) -> list[Any]:
        given: Any = {**self.constants, **values} if self.constants or self.lists else values
        for name, parts in self.lists.items():
            # Those of the statement itself have the length that it was compiled for.
            listed = _fill_up(given[name]) if name in values else given[name]
            given |= zip(parts, _flatten(listed), strict=True)
        bound = [given[name] for name in self.names]
        for place, processor in self.binders:
            bound[place] = processor(bound[place])
        return bound

    def read(self, cursor: DBAPICursor, dialect: Dialect) -> list[Any]:
        if self.returns_rows is None:
            # Only once: a driver may take long to describe a result.
            self._learn(cursor.description, dialect)
        if not self.returns_rows:
            return []
        rows = cursor.fetchall()
        if not self.readers:
            return [self.make_row(row) for row in rows]
        converted = []
        for row in rows:
            values = list(row)
            for place, processor in self.readers:
                values[place] = processor(values[place])
            converted.append(self.make_row(values))
        return converted

    def _learn(self, described: Sequence[Any] | None, dialect: Dialect) -> None:
        if described is not None and self.columns is None:
            self.make_row = _row_type([column[0] for column in described])
        elif described is not None and self.columns is not None:
            self.make_row = _row_type([name for name, _ in self.columns])
            self.readers = _places(
                type_.dialect_impl(dialect).result_processor(dialect, column[1])
                for (_, type_), column in zip(self.columns, described, strict=True)
            )
        # Last: another thread may execute it meanwhile.
        self.returns_rows = described is not None


def _fill_up(values: Sequence[Any]) -> Sequence[Any]:
    length = next((one for one in LIST_LENGTHS if one >= len(values)), len(values))
    return [*values, *([values[-1]] * (length - len(values)))] if values else values


def _flatten(values: Sequence[Any]) -> Sequence[Any]:
    return list(chain.from_iterable(values)) if values and isinstance(values[0], tuple) else values


@dataclass(frozen=True, slots=True)
class _Expanding:
    """A statement with lists as parameters: its SQL depends on their lengths."""

    names: Sequence[str]
    by_lengths: dict[tuple[int, ...], CompiledStatement] = field(default_factory=dict)

    def expand(
        self, statement: Any, dialect: Dialect, values: Mapping[str, Any]
    ) -> CompiledStatement | None:
        filled = {name: _fill_up(values[name]) for name in self.names}
        lengths = tuple([len(values) for values in filled.values()])
        found = self.by_lengths.get(lengths)
        if found is None and max(lengths, default=0) <= MAX_LIST_LENGTH:
            # Compiled anew: what is kept must not refer to the statement, or both stay for ever.
            compiled = statement.compile(dialect=dialect, column_keys=list(values))
            found = self.by_lengths[lengths] = _describe(compiled, {**values, **filled})
        return found


class _Left(Enum):
    """Why a statement is executed by SQLAlchemy."""

    #: Many are built for a single execution, and are not worth keeping.
    ONCE = auto()
    ALWAYS = auto()


_Version = CompiledStatement | _Expanding | _Left
#: What was made of each statement, by dialect and names of parameters.
_versions: WeakKeyDictionary[Executable, dict[tuple[Any, ...], _Version]] = WeakKeyDictionary()


class DirectConnection(Connection):
    """Executes statements directly by the driver, from their second execution on.

    Many rows at once, long lists, connections with listeners, and the first statement of a
    transaction that nobody has begun are left to SQLAlchemy.
    """

    _cursor: DBAPICursor | None = None
    #: Called before each statement.
    before: Callable[[], None] | None = None

    def execute(self, statement: Any, parameters: Any = None, **options: Any) -> Any:
        self._flush()
        if isinstance(parameters, list | tuple) and len(parameters) == 1:
            parameters = parameters[0]
        is_plain = not options and not isinstance(parameters, list | tuple)
        if not is_plain or not self.in_transaction() or self._has_listeners:
            return super().execute(statement, parameters, **options)
        values: Mapping[str, Any] = parameters or {}
        compiled = _find(statement, self.dialect, values)
        if compiled is None:
            return super().execute(statement, parameters)
        bound = compiled.bind(values)
        cursor = self._cursor or self._open_cursor()
        try:
            cursor.execute(compiled.sql, bound)
            return Rows(compiled.read(cursor, self.dialect), cursor.rowcount)
        except self.dialect.loaded_dbapi.Error as error:
            self._cursor = None
            self._handle_dbapi_exception(error, compiled.sql, bound, cursor, None)

    def exec_driver_sql(self, *arguments: Any, **options: Any) -> Any:
        self._flush()
        return super().exec_driver_sql(*arguments, **options)

    def begin_nested(self) -> NestedTransaction:
        self._flush()
        return super().begin_nested()

    def _flush(self) -> None:
        before = self.before
        if before is not None:
            with call_before_each(self, None):
                before()

    @property
    def _has_listeners(self) -> bool:
        """Whether somebody listens to statements, and not only to connections."""
        if not (self._has_events or self.engine._has_events):  # noqa: SLF001
            return False
        return any(getattr(self.dispatch, name) for name in _STATEMENT_EVENTS)

    def _open_cursor(self) -> DBAPICursor:
        """Open the cursor of all statements; each is done with when the next one is executed."""
        self._cursor = self.connection.cursor()
        return self._cursor


@contextmanager
def call_before_each(connection: Connection, flush: Callable[[], None] | None) -> Iterator[None]:
    """Call `flush` before each statement that is executed meanwhile, but for its own."""
    direct = cast("DirectConnection", connection)
    earlier, direct.before = direct.before, flush
    try:
        yield
    finally:
        direct.before = earlier


class Rows:
    """The rows that a statement returned, with the methods of SQLAlchemy's results."""

    __slots__ = ("_rows", "rowcount")

    def __init__(self, rows: list[Any], rowcount: int) -> None:
        self._rows = rows
        #: How many rows a statement has changed.
        self.rowcount = rowcount

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def all(self) -> list[Any]:
        return self._rows

    def first(self) -> Any:
        return self._rows[0] if self._rows else None

    def one_or_none(self) -> Any:
        if len(self._rows) > 1:
            raise MultipleResultsFound
        return self.first()

    def one(self) -> Any:
        if not self._rows:
            raise NoResultFound
        return self.one_or_none()

    def scalar(self) -> Any:
        return self._rows[0][0] if self._rows else None

    def scalar_one(self) -> Any:
        return self.one()[0]

    def scalar_one_or_none(self) -> Any:
        self.one_or_none()
        return self.scalar()

    def scalars(self) -> "Rows":
        return Rows([row[0] for row in self._rows], self.rowcount)

    def mappings(self) -> "Rows":
        return Rows([row._mapping for row in self._rows], self.rowcount)  # noqa: SLF001


def _find(
    statement: Executable, dialect: Dialect, values: Mapping[str, Any]
) -> CompiledStatement | None:
    versions = _versions.get(statement)
    if versions is None:
        versions = _versions[statement] = {}
    key = (type(dialect), *values)
    found = versions.get(key)
    if found is None and not statement.get_execution_options().get(IS_KEPT):
        versions[key] = _Left.ONCE
    elif found is None or found is _Left.ONCE:
        found = versions[key] = _compile(statement, dialect, values)
    if isinstance(found, _Expanding):
        return found.expand(statement, dialect, values)
    return found if isinstance(found, CompiledStatement) else None


def _compile(statement: Any, dialect: Dialect, values: Mapping[str, Any]) -> _Version:
    compiled: SQLCompiler = statement.compile(dialect=dialect, column_keys=list(values))
    has_defaults = compiled.insert_prefetch or compiled.update_prefetch
    has_calls = any(bound.callable for bound in compiled.binds.values())
    if has_defaults or has_calls or compiled.literal_execute_params or compiled.escaped_bind_names:
        return _Left.ALWAYS
    lists = [bound.key for bound in compiled.post_compile_params]
    if not lists:
        return _describe(compiled, values)
    # A list that the statement itself has always has the same length.
    return _Expanding([name for name in lists if name in values])


def _describe(compiled: SQLCompiler, values: Mapping[str, Any]) -> CompiledStatement:
    sql = compiled.string
    names: Sequence[str] = compiled.positiontup or ()
    # These two are not public; they are what SQLAlchemy itself goes by.
    processors: dict[str, Any] = {**compiled._bind_processors}  # noqa: SLF001
    columns = compiled._result_columns  # noqa: SLF001
    constants = {
        name: bound.effective_value
        for name, bound in compiled.binds.items()
        if name not in values and not bound.required
    }
    lists: Mapping[str, Sequence[str]] = {}
    if compiled.post_compile_params:
        expanded = compiled.construct_expanded_state({**constants, **values})
        sql, names, lists = (
            expanded.statement,
            expanded.positiontup or (),
            expanded.parameter_expansion,
        )
        processors |= expanded.processors
    return CompiledStatement(
        sql=sql,
        names=names,
        constants={name: value for name, value in constants.items() if name in {*names, *lists}},
        binders=_places(processors.get(name) for name in names),
        lists=lists,
        columns=None
        if compiled.isplaintext
        else [(column.keyname, column.type) for column in columns],
    )


def _places(processors: Iterable[Processor | None]) -> list[tuple[int, Processor]]:
    return [(place, one) for place, one in enumerate(processors) if one is not None]


def _row_type(names: Sequence[str]) -> Callable[[Iterable[Any]], Any]:
    base: Any = namedtuple("Row", names, rename=True)  # type: ignore[misc]  # noqa: PYI024

    class Row(base):
        __slots__ = ()

        @property
        def _mapping(self) -> dict[str, Any]:
            return dict(zip(names, self, strict=True))

    make: Callable[[Iterable[Any]], Any] = Row._make
    return make
