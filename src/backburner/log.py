"""Log set-up: one line per event on stderr and in a file, with secrets redacted.

Secrets are redacted by value, wherever they appear: in a field, a text or a traceback.
"""

import json
import logging
import os
import queue
import re
import sys
import threading
import traceback
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path
from typing import Any, Literal

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from backburner.log_file import RotatingLogFile
from backburner.private_file import write_private_file

#: Shorter values appear in ordinary text too often to be redacted.
MIN_SECRET_CHARS = 6
REPLACEMENT = "[secret]"
#: Lines that wait for the disk; further ones are not written to the file.
MAX_PENDING_LINES = 10_000
WRITE_DELAY_SECONDS = 0.1


class Redactor:
    """Replaces registered values wherever they appear; a structlog processor."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._values = set[str]()
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        for secret in secrets:
            if len(secret) >= MIN_SECRET_CHARS:
                # Error messages often quote a value as Python or JSON writes it.
                self._values |= {secret, repr(secret)[1:-1], json.dumps(secret)[1:-1]}
        # Longest first: one secret may be part of another.
        longest_first = sorted(self._values, key=len, reverse=True)
        alternatives = "|".join(re.escape(secret) for secret in longest_first)
        self._pattern = re.compile(alternatives) if alternatives else None

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        return {self.clean_text(key): self.clean(value) for key, value in event.items()}

    def clean_text(self, text: str) -> str:
        return self._pattern.sub(REPLACEMENT, text) if self._pattern else text

    def clean(self, value: Any) -> Any:
        match value:
            case str():
                return self.clean_text(value)
            case None | bool():
                return value
            case Mapping():
                return {self.clean(key): self.clean(inner) for key, inner in value.items()}
            case list() | tuple() | AbstractSet():
                return [self.clean(inner) for inner in value]
            case _:
                # Any other value is logged as its representation.
                text = repr(value)
                cleaned = self.clean_text(text)
                return value if cleaned == text else cleaned


#: Their routine messages, such as one for each request, are useful for debugging only.
_LIBRARIES = ("alembic", "mcp", "httpx", "httpx2", "httpcore", "httpcore2", "openai", "anthropic")
_redactor = Redactor()


@dataclass(slots=True)
class _LogFile:
    """The handler of the log file, and the thread that writes it."""

    formatter: logging.Formatter
    #: The handler on stderr, and the level that it gets if there is no file.
    shown: logging.Handler
    level: str
    handler: logging.Handler | None = None
    listener: QueueListener | None = None


class _PatientListener(QueueListener):
    """Writes lines to the file together, a moment later.

    A thread that wakes for every line takes the interpreter from the run that has just begun.
    """

    def __init__(self, pending: "queue.Queue[Any]", file: logging.Handler) -> None:
        super().__init__(pending, file)
        self._pending = pending
        self._ending = threading.Event()

    def dequeue(self, block: bool) -> Any:  # noqa: FBT001 (the library's interface)
        is_first = self._pending.empty()
        record = super().dequeue(block)
        if is_first:
            self._ending.wait(WRITE_DELAY_SECONDS)
        return record

    def stop(self) -> None:
        self._ending.set()
        super().stop()


_file: _LogFile | None = None


def set_up(
    *,
    level: str,
    style: Literal["text", "json"],
    secrets: Iterable[str] = (),
    shown_level: str | None = None,
) -> None:
    """Send every log line of this process through one handler on stderr.

    `shown_level` is for stderr, if a file gets more.
    """
    global _redactor, _file  # noqa: PLW0603 (logging is per process, and so are these)
    close_file()
    _redactor = Redactor(secrets)
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel((shown_level or level).upper())
    handler.setFormatter(_formatter(style, shared, colors=os.isatty(2)))
    _file = _LogFile(_formatter(style, shared, colors=False), handler, level.upper())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    logging.captureWarnings(capture=True)
    # A line that cannot be formatted would be printed to stderr with all its arguments.
    logging.raiseExceptions = False
    _quieten(level)


def open_file(folder: Path, name: str) -> None:
    """Write the log to a file as well; a thread does it, so that a slow disk delays nothing.

    If it cannot be written, stderr has all lines.
    """
    if _file is None or _file.handler is not None:
        return
    try:
        file = RotatingLogFile(folder, name)
    except OSError as error:
        _file.shown.setLevel(_file.level)
        structlog.get_logger(__name__).warning(
            "log.file_failed", folder=str(folder), error=error.strerror
        )
        return
    file.setFormatter(_file.formatter)
    pending = queue.Queue[Any](MAX_PENDING_LINES)
    _file.handler = _WholeRecords(pending)
    _file.listener = _PatientListener(pending, file)
    logging.getLogger().addHandler(_file.handler)
    _file.listener.start()


def close_file() -> None:
    """Write what is pending, and close the file."""
    if _file is None or _file.handler is None or _file.listener is None:
        return
    logging.getLogger().removeHandler(_file.handler)
    _file.listener.stop()
    for handler in _file.listener.handlers:
        handler.close()
    _file.handler = _file.listener = None


class _WholeRecords(QueueHandler):
    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        # Formatted in the thread: the record does not leave the process.
        return record


def add_secrets(secrets: Iterable[str]) -> None:
    """Redact further values from now on; those known before stay secret."""
    _redactor.add(secrets)


def clean(text: str) -> str:
    """Redact text that is not logged, such as an error message."""
    return _redactor.clean_text(text)


def save_traceback(error: BaseException, folder: Path) -> Path:
    path = folder / "crash.log"
    text = clean("".join(traceback.format_exception(error)))
    write_private_file(path, [text.encode()], overwrite=True)
    return path


def _formatter(
    style: Literal["text", "json"], shared: list[Processor], *, colors: bool
) -> logging.Formatter:
    renderer: Processor = (
        structlog.processors.JSONRenderer()
        if style == "json"
        else structlog.dev.ConsoleRenderer(
            colors=colors, exception_formatter=structlog.dev.plain_traceback
        )
    )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.StackInfoRenderer(),
            # Before redaction, which has to see the text of the exception.
            structlog.processors.format_exc_info,
            _redactor,
            renderer,
        ],
    )


def _quieten(level: str) -> None:
    for name in (*_LIBRARIES, "uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.NOTSET if level == "debug" else logging.WARNING)
    logging.getLogger("uvicorn.access").addFilter(_drop_query)


def _drop_query(record: logging.LogRecord) -> bool:
    """Log requests without their query strings: clients put secrets there, though no route does."""
    match record.args:
        case (client, method, str(target), *rest):
            record.args = (client, method, target.partition("?")[0], *rest)
    return True
