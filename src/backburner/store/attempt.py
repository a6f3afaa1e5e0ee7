"""A transaction in a thread, which another thread can cut off."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from sqlalchemy import Connection

from backburner.core.errors import StoreFailed
from backburner.store.dialect import cut
from backburner.store.failures import NO_ANSWER


class Attempt:
    def __init__(self) -> None:
        self._lock = Lock()
        self._connection: object | None = None
        self._expired = False

    @contextmanager
    def covers(self, connection: Connection) -> Iterator[None]:
        """Allow `expire` to cut this connection while it is used."""
        with self._lock:
            if self._expired:
                raise StoreFailed(NO_ANSWER)
            self._connection = connection.connection.driver_connection
        try:
            yield
        finally:
            with self._lock:
                self._connection = None
            if self.is_over and not connection.invalidated:
                # Cut in its last moment: nobody else may get it.
                connection.invalidate()

    @property
    def is_over(self) -> bool:
        return self._expired

    def expire(self) -> None:
        """Cut the connection, if there is one yet; otherwise it will not be used."""
        with self._lock:
            self._expired = True
            if self._connection is not None:
                cut(self._connection)
