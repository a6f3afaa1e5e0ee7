"""Output for people: aligned tables, short ids, local times. Scripts use `--json`."""

import json
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from textwrap import shorten
from typing import Any
from unicodedata import category, east_asian_width

import click

from backburner.core.validation import escape_unprintable, unprintable_characters

#: Long enough to be unique, short enough to type.
SHORT_ID_CHARS = 12
MAX_CELL_CHARS = 72
#: Between two columns of a table.
GAP = "  "
#: In a terminal, wide columns of prose and addresses shrink so that a row is one line. Others never
#: do: ids, names, times and states have to be read whole, even if a line is too long for that.
MAX_FIXED_WIDTH, MIN_SHRUNK_WIDTH = 19, 8
_CUT = "..."


def print_line(line: str) -> None:
    """Print a line; a closed stdout is no reason for a server to stop."""
    with suppress(OSError):
        click.echo(line)


def print_json(value: Any) -> None:
    click.echo(_escape(json.dumps(value, indent=2, ensure_ascii=False)))


def print_result(value: Any, text: str, *, as_json: bool) -> None:
    """Print the result of a command: the whole object for scripts, one line for people."""
    if as_json:
        print_json(value)
    else:
        click.echo(printable(text))


def print_table(rows: Sequence[Mapping[str, Any]], *, empty: str) -> None:
    """Print rows in aligned columns under their names."""
    if not rows:
        click.echo(empty)
        return
    cells = [list(rows[0]), *([printable(str(cell)) for cell in row.values()] for row in rows)]
    columns = list(zip(*cells, strict=True))
    widths = [max(map(_width, column)) for column in columns]
    if sys.stdout.isatty():
        names = {number for number, column in enumerate(columns) if not _may_shrink(column)}
        widths = shrink_columns(widths, terminal_width(), names)
    for row in cells:
        line = GAP.join(_fit(cell, width) for cell, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())


def terminal_width() -> int:
    return shutil.get_terminal_size().columns


def shrink_columns(
    widths: Sequence[int], columns: int, fixed: Collection[int] = frozenset()
) -> list[int]:
    """Make the widest columns narrower until a row fits, or none can give more.

    `fixed` ones stay as they are, by their numbers.
    """
    shrunk = list(widths)
    wide = [
        index
        for index, width in enumerate(widths)
        if width > MAX_FIXED_WIDTH and index not in fixed
    ]
    while sum(shrunk) + len(GAP) * (len(shrunk) - 1) > columns:
        widest = max(wide, key=shrunk.__getitem__, default=None)
        if widest is None or shrunk[widest] <= MIN_SHRUNK_WIDTH:
            break
        shrunk[widest] -= 1
    return shrunk


def _may_shrink(column: Sequence[str]) -> bool:
    """Return whether a column is of prose or addresses, and not of names or ids."""
    return any(" " in cell.strip() or "://" in cell for cell in column[1:])


def _fit(text: str, width: int) -> str:
    """Cut or fill a text to a width in the terminal."""
    if _width(text) > width:
        while _width(text) > width - len(_CUT):
            text = text[:-1]
        text += _CUT
    return text + " " * (width - _width(text))


def _width(text: str) -> int:
    """Count the columns that a text takes in a terminal."""
    if text.isascii():
        return len(text)
    wide = sum(east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(category(char) in ("Mn", "Me") for char in text)


def print_items(
    items: Sequence[Any], rows: Sequence[Mapping[str, Any]], *, empty: str, as_json: bool
) -> None:
    """Print a list: the whole objects for scripts, a table for people."""
    if as_json:
        print_json(items)
    else:
        print_table(rows, empty=empty)


def print_fields(fields: Mapping[str, Any]) -> None:
    """Print the fields of one object, one per line; empty ones are left out."""
    filled = {name: value for name, value in fields.items() if value not in (None, "", [])}
    width = max(len(name) for name in filled)
    for name, value in filled.items():
        click.echo(f"{name:<{width}}  {printable(str(value))}")


def short_id(full_id: str | None) -> str:
    return (full_id or "")[:SHORT_ID_CHARS]


def local_time(timestamp: str | None) -> str:
    """Format a timestamp in the time zone of this machine."""
    if not timestamp:
        return ""
    return f"{datetime.fromisoformat(timestamp).astimezone():%Y-%m-%d %H:%M}"


def local_times(timestamps: Sequence[str]) -> str:
    """List times, with seconds where they would look the same without."""
    shown = [local_time(timestamp) for timestamp in timestamps]
    if len({*shown}) < len(shown):
        moments = map(datetime.fromisoformat, timestamps)
        shown = [f"{moment.astimezone():%Y-%m-%d %H:%M:%S}" for moment in moments]
    return ", ".join(shown)


def describe_progress(progress: Mapping[str, str] | None) -> str:
    """Show what a run in progress says that it is doing, and since when."""
    if progress is None:
        return ""
    return f"{progress['text']} ({local_time(progress['reported_at'])})"


def truncate(text: str | None, limit: int = MAX_CELL_CHARS) -> str:
    return shorten(text or "", limit, placeholder=_CUT)


def printable(text: str) -> str:
    """Show control and invisible characters by their codes: text must not control the terminal."""
    return escape_unprintable(text)


def _escape(text: str) -> str:
    """Escape the same characters in JSON, as JSON does it."""
    return text.translate(
        {ord(char): json.dumps(char)[1:-1] for char in unprintable_characters(text)}
    )
