"""Limits of this process that are reached: nothing can be written, nothing can be opened."""

import resource
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager


def no_bytes_can_be_written() -> AbstractContextManager[None]:
    """Let files be made and not grow, as on a full disk."""
    return _limited(resource.RLIMIT_FSIZE, 0)


def no_file_can_be_opened() -> AbstractContextManager[None]:
    """Let there be no free file handle."""
    return _limited(resource.RLIMIT_NOFILE, 0)


@contextmanager
def _limited(what: int, limit: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(what)
    resource.setrlimit(what, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(what, (soft, hard))
