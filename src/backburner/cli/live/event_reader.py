"""The stream of changes, read in a thread: it goes on where it was when the server is back."""

from collections.abc import Callable
from queue import Empty, Queue
from threading import Event, Thread
from typing import Any

from backburner.cli.client import NoServer, NotSignedIn, Server
from backburner.core.errors import BackburnerError, MachineFailed

#: Between two attempts to reach a server that is away.
RETRY_SECONDS = 1.0
#: Names of events that the reader adds to those of the server; both carry a text.
LOST, CONNECTED = "lost", "connected"

StreamEvent = tuple[str, Any]


class EventReader:
    """Reads events in the background; the thread ends with the program, or when it is closed."""

    def __init__(
        self, find_server: Callable[[], Server], *, retry_seconds: float = RETRY_SECONDS
    ) -> None:
        self._find_server = find_server
        self._retry_seconds = retry_seconds
        self._events: Queue[StreamEvent | BackburnerError] = Queue()
        self._last_id = ""
        self._closed = Event()
        Thread(target=self._run, daemon=True).start()

    def next(self, seconds: float | None) -> StreamEvent | None:
        """Wait for an event; None: there was none. An error that stays is raised."""
        try:
            event = self._events.get(timeout=seconds)
        except Empty:
            return None
        if isinstance(event, BackburnerError):
            raise event
        return event

    def close(self) -> None:
        self._closed.set()

    def _run(self) -> None:
        is_lost = is_refused = False
        while not self._closed.is_set():
            text = "The server has closed the connection."
            try:
                for event in self._find_server().follow("/api/events", after=self._last_id):
                    if is_lost:
                        self._events.put((CONNECTED, ""))
                    is_lost = is_refused = False
                    self._take(*event)
            except (NoServer, MachineFailed) as error:
                text = error.args[0] if error.args else str(error)
            except NotSignedIn as error:
                # A server that starts replaces the credential, maybe after it was read here.
                if is_refused:
                    self._events.put(error)
                    return
                is_refused, text = True, error.message
            except BackburnerError as error:
                self._events.put(error)
                return
            if not is_lost:
                self._events.put((LOST, text))
            is_lost = True
            self._closed.wait(self._retry_seconds)

    def _take(self, name: str, data: Any) -> None:
        # Drafts have no id: the next change replaces them.
        self._last_id = data.get("id", self._last_id)
        self._events.put((name, data))
