"""Texts without case and accents, as `core.content.search` folds them."""

from typing import Any

from sqlalchemy import Text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from backburner.core.content.search import fold

#: The name of the function in SQLite.
FUNCTION = "fold_text"


class Folded(FunctionElement[str]):
    """A text without case and accents."""

    name = "folded"
    type = Text()
    inherit_cache = True


@compiles(Folded, "sqlite")
def _for_sqlite(element: Folded, compiler: Any, **options: Any) -> str:
    return f"{FUNCTION}({compiler.process(element.clauses, **options)})"


@compiles(Folded, "postgresql")
def _for_postgresql(element: Folded, compiler: Any, **options: Any) -> str:
    text = compiler.process(element.clauses, **options)
    # Where every character is a byte, there is no accent.
    return (
        f"CASE WHEN octet_length({text}) = char_length({text}) THEN lower({text}) ELSE"
        f" replace(lower(regexp_replace(normalize({text}, NFKD), '[\\u0300-\\u036f]', '', 'g')),"
        " 'ß', 'ss') END"
    )


def add_to_sqlite(connection: Any) -> None:
    connection.create_function(FUNCTION, 1, fold, deterministic=True)
