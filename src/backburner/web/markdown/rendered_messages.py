"""Rendered messages, kept in memory within a bound."""

import sys
from collections import OrderedDict
from hashlib import blake2b
from threading import Lock

from markupsafe import Markup

from backburner.web.markdown.rendering import render
from backburner.web.off_loop import check_off_loop

_Key = tuple[str, bytes]
#: The key, and the places of both in the collection.
_ENTRY_BYTES = 300


class RenderedMessages:
    """The least recently used are dropped first. Threads may share it."""

    def __init__(self, *, max_bytes: int = 16_000_000) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._messages: OrderedDict[_Key, Markup] = OrderedDict()
        self._lock = Lock()

    @property
    def size(self) -> int:
        """The bytes that are kept."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._messages)

    def render(self, message_id: str, text: str) -> Markup:
        """Render a message, unless this text of it is kept."""
        key = _key(message_id, text)
        html = self._find(key)
        if html is None:
            check_off_loop()
            # Without the lock: two threads may render the same message, none waits.
            html = render(text)
            self._keep(key, html)
        return html

    def find(self, message_id: str, text: str) -> Markup | None:
        """Return a message that is kept."""
        return self._find(_key(message_id, text))

    def _find(self, key: _Key) -> Markup | None:
        with self._lock:
            html = self._messages.get(key)
            if html is not None:
                self._messages.move_to_end(key)
            return html

    def _keep(self, key: _Key, html: Markup) -> None:
        size = _size(html)
        with self._lock:
            if size > self._max_bytes or key in self._messages:
                return
            self._messages[key] = html
            self._bytes += size
            while self._bytes > self._max_bytes:
                _, dropped = self._messages.popitem(last=False)
                self._bytes -= _size(dropped)


def _key(message_id: str, text: str) -> _Key:
    data = text.encode(errors="surrogatepass")
    return message_id, blake2b(data, digest_size=16).digest()


def _size(html: Markup) -> int:
    return sys.getsizeof(html) + _ENTRY_BYTES
