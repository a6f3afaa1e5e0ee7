"""What a server said, for people to read: aligned columns, short ids, times of this machine."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from textwrap import shorten
from typing import Any

import click

#: Of an id: enough to tell one from all others, and to be typed.
SHORT = 12
WIDEST = 72


def say_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def say_table(rows: Sequence[Sequence[Any]], *, empty: str) -> None:
    """Print rows in columns that stand below each other; the first one is the heading."""
    if len(rows) == 1:
        click.echo(empty)
        return
    cells = [[clean(str(cell)) for cell in row] for row in rows]
    widths = [max(len(row[number]) for row in cells) for number in range(len(cells[0]))]
    for row in cells:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())


def say_facts(facts: Mapping[str, Any]) -> None:
    """Print what is known of one thing, a line each."""
    known = {name: value for name, value in facts.items() if value not in (None, "", [])}
    width = max(len(name) for name in known)
    for name, value in known.items():
        click.echo(f"{name:<{width}}  {clean(str(value))}")


def short(which: str | None) -> str:
    return (which or "")[:SHORT]


def when(moment: str | None) -> str:
    """Show a time as the clock on the wall has it here."""
    if not moment:
        return ""
    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}"


def brief(text: str | None) -> str:
    return shorten(text or "", WIDEST, placeholder="...")


def clean(text: str) -> str:
    """Leave out what would do something to a terminal: others may have written this."""
    return "".join(sign if sign.isprintable() or sign in "\n\t" else "?" for sign in text)
