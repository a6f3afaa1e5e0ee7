"""Logging set up once for everything: one line per event on stderr, without any secret in it.

Secrets are known by value, so it does not matter which field, text or traceback one got into.
"""

import json
import logging
import os
import re
import sys
import traceback
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Literal

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

#: Anything shorter stands in innocent text too often to be replaced.
SHORTEST = 6
REPLACEMENT = "[secret]"


class Redactor:
    """Replaces registered values wherever they stand; a structlog processor."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        for secret in secrets:
            if len(secret) >= SHORTEST:
                # An error's text often quotes a value the way Python or JSON writes it.
                self._secrets |= {secret, repr(secret)[1:-1], json.dumps(secret)[1:-1]}
        # Longest first: one secret may be part of another.
        longest_first = sorted(self._secrets, key=len, reverse=True)
        any_of_them = "|".join(re.escape(secret) for secret in longest_first)
        self._pattern = re.compile(any_of_them) if any_of_them else None

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
                # Whatever else it is, its representation is what would be shown.
                shown = repr(value)
                cleaned = self.clean_text(shown)
                return value if cleaned == shown else cleaned


_redactor = Redactor()


def set_up(*, level: str, style: Literal["text", "json"], secrets: Iterable[str] = ()) -> None:
    """Send every log line of this process through one handler on stderr."""
    global _redactor  # noqa: PLW0603 (logging is one per process, and so is this)
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
    handler.setFormatter(_formatter(style, shared))
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    logging.captureWarnings(capture=True)
    # A line that cannot be formatted would be dumped to stderr with all its arguments.
    logging.raiseExceptions = False
    _quieten(level)


def redact(secrets: Iterable[str]) -> None:
    """Register values that must not show in any log line from now on."""
    _redactor.add(secrets)


def clean(text: str) -> str:
    """Replace registered secrets in text that goes elsewhere than into the log."""
    return _redactor.clean_text(text)


def keep_traceback(error: BaseException, folder: Path) -> Path:
    """Write down where an error came from, for whoever looks into it later."""
    path = folder / "crash.log"
    text = clean("".join(traceback.format_exception(error)))
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:  # noqa: PTH123
        file.write(text)
    return path


def _formatter(style: Literal["text", "json"], shared: list[Processor]) -> logging.Formatter:
    renderer: Processor = (
        structlog.processors.JSONRenderer()
        if style == "json"
        else structlog.dev.ConsoleRenderer(
            colors=os.isatty(2), exception_formatter=structlog.dev.plain_traceback
        )
    )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.StackInfoRenderer(),
            # Before the redaction, which has to see the text of an exception.
            structlog.processors.format_exc_info,
            _redact_event,
            renderer,
        ],
    )


def _redact_event(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    return _redactor(logger, method, event)


def _quieten(level: str) -> None:
    # What they start, do and stop is news only to somebody who looks for a fault.
    for name in ("alembic", "mcp", "uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.NOTSET if level == "debug" else logging.WARNING)
