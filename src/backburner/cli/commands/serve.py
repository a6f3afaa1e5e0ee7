"""`backburner up`, `serve` and `worker`: start everything in one process, or one part of it."""

from collections.abc import Iterator

import click

from backburner import __version__
from backburner.cli.server_main import run_until_stopped
from backburner.cli.setting_options import file_options, setting
from backburner.settings import Settings

STOP_HINT = "Press Ctrl-C to stop."
LOG_HINT = "See the log with `backburner logs`."


@click.command("up")
@file_options
@setting("host", "ADDRESS")
@setting("port", "NUMBER")
@setting("log_level", "LEVEL")
@setting("log_format", "FORMAT")
def up(**options: str | None) -> None:
    """Start the server and a worker on this machine.

    It prints its address to stdout, and warnings and errors to stderr. The rest of the log is in
    the data folder, where `backburner logs` shows it; with --log-level, --log-format or one of
    these settings, stderr has it too.
    """
    run_until_stopped(options, _up_banner)


@click.command("serve")
@file_options
@setting("host", "ADDRESS")
@setting("port", "NUMBER")
@setting("log_level", "LEVEL")
@setting("log_format", "FORMAT")
def serve(**options: str | None) -> None:
    """Start a server without a worker (PostgreSQL only).

    Start at least one `backburner worker` on the same database.
    """
    run_until_stopped(
        options,
        _serve_banner,
        needs_postgres="`backburner serve` needs PostgreSQL: a SQLite file cannot be shared.",
        works=False,
    )


@click.command("worker")
@file_options
@setting("concurrency", "NUMBER")
@setting("host", "ADDRESS")
@setting("worker_port", "NUMBER")
@setting("log_level", "LEVEL")
@setting("log_format", "FORMAT")
def worker(**options: str | None) -> None:
    """Start a worker without a server (PostgreSQL only).

    Any number of workers can share one database.
    """
    run_until_stopped(
        options,
        _worker_banner,
        needs_postgres="`backburner worker` needs PostgreSQL: a SQLite file cannot be shared.",
        serves=False,
    )


def _up_banner(settings: Settings, address: str) -> Iterator[str]:
    yield f"Backburner {__version__} is ready at {address}"
    yield f"Data: {settings.data}"
    yield f"{STOP_HINT} {LOG_HINT}"


def _serve_banner(_: Settings, address: str) -> Iterator[str]:
    yield f"Backburner {__version__} is ready at {address}"
    yield f"Start at least one `backburner worker` on the same database. {STOP_HINT}"


def _worker_banner(_: Settings, name: str) -> Iterator[str]:
    yield f"Backburner {__version__}: worker {name} started"
    yield STOP_HINT
