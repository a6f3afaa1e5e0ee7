"""`backburner logs`: show the log of the server on this machine, and follow it."""

import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import click

from backburner.cli.output import printable
from backburner.core.errors import NotFound
from backburner.data_folder import LOG_FOLDER, find_data_folder
from backburner.log_file import old_paths

#: Between two looks for new lines.
POLL_SECONDS = 0.2


@click.command("logs")
@click.argument("name", default="server")
@click.option("-f", "--follow", is_flag=True, help="Print new lines until interrupted.")
@click.option(
    "-n",
    "--lines",
    metavar="NUMBER",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    help="Number of last lines to print.",
)
@click.option("--data", metavar="FOLDER", help="Data folder of the server. [BACKBURNER_DATA]")
def logs(*, name: str, follow: bool, lines: int, data: str | None) -> None:
    """Show the log of the server on this machine.

    NAME is the log to show: server, worker, or worker-2 where several run. It needs no running
    server. The setting log_level says how much is written.
    """
    path = find_log(find_data_folder(data=data) / LOG_FOLDER, name)
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in last_lines(path, file, lines):
            click.echo(printable(line.rstrip("\n")))
        if follow:
            for line in new_lines(path, file):
                click.echo(printable(line.rstrip("\n")))


def find_log(folder: Path, name: str) -> Path:
    names = sorted(path.stem for path in folder.glob("*.log")) if folder.is_dir() else []
    if name in names:
        return folder / f"{name}.log"
    if names:
        raise NotFound(f"There is no log {name!r}.", hint=f"There are: {', '.join(names)}.")
    raise NotFound(
        f"There is no log in {folder}.",
        hint="Start `backburner up`, or select another data folder with --data.",
    )


def last_lines(path: Path, file: TextIO, count: int) -> list[str]:
    """Read a log to its end, and return its last lines, also from older files."""
    last = deque(file, maxlen=count)
    for older in old_paths(path):
        if len(last) >= count or not older.exists():
            break
        with older.open(encoding="utf-8", errors="replace") as old_file:
            last.extendleft(reversed(deque(old_file, maxlen=count - len(last))))
    return list(last)


def new_lines(path: Path, file: TextIO) -> Iterator[str]:
    """Yield lines as they are written, also after the file was replaced by a new one."""
    while True:
        is_replaced = not _is_same(path, file)
        # After the check: whatever was written before it was replaced is still read.
        yield from _whole_lines(file)
        if is_replaced and path.exists():
            with path.open(encoding="utf-8", errors="replace") as newer:
                yield from new_lines(path, newer)
        time.sleep(POLL_SECONDS)


def _whole_lines(file: TextIO) -> Iterator[str]:
    """Read the lines that are complete; the rest is read again later."""
    while True:
        start = file.tell()
        line = file.readline()
        if not line.endswith("\n"):
            file.seek(start)
            return
        yield line


def _is_same(path: Path, file: TextIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
