"""The beginning and the end of a long output, kept while it is read."""


class Excerpt:
    """Keeps a quarter of its limit from the beginning, the rest from the end, where results are."""

    def __init__(self, limit: int) -> None:
        self._max_head = limit // 4
        self._max_tail = limit - self._max_head
        self._head = bytearray()
        self._tail = bytearray()
        #: The bytes that were added, kept or not.
        self.size = 0

    def add(self, chunk: bytes) -> None:
        self.size += len(chunk)
        room = self._max_head - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        # Not every time: cutting bytes off the front moves all the others.
        if len(self._tail) > 2 * self._max_tail:
            del self._tail[: -self._max_tail]

    def text(self) -> str:
        """Return text that can be stored, with a note in place of the bytes left out."""
        tail = self._tail[-self._max_tail :]
        left_out = self.size - len(self._head) - len(tail)
        if not left_out:
            return _decode(self._head + tail)
        note = f"\n[... {left_out:,} bytes left out ...]\n"
        return _decode(self._head) + note + _decode(tail)


def _decode(data: bytes | bytearray) -> str:
    return data.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
