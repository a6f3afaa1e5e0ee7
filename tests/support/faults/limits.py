"""Limits of this process that are reached: nothing can be written, nothing can be opened."""

import os
import resource
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager


def no_bytes_can_be_written() -> AbstractContextManager[None]:
    """Let files be made and not grow, as on a full disk."""
    return _limited(resource.RLIMIT_FSIZE, 0)


def few_files_can_be_opened(spare: int = 0) -> AbstractContextManager[None]:
    """Leave so many file handles free at most."""
    first_free = os.dup(0)
    os.close(first_free)
    return _limited(resource.RLIMIT_NOFILE, first_free + spare)


@contextmanager
def _limited(what: int, limit: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(what)
    resource.setrlimit(what, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(what, (soft, hard))
