"""The beginning and the end of something long, kept while it comes by."""


class Excerpt:
    """Takes bytes; keeps a few from the beginning and more from the end, where the results are."""

    def __init__(self, limit: int) -> None:
        self._most_head = limit // 4
        self._most_tail = limit - self._most_head
        self._head = bytearray()
        self._tail = bytearray()
        #: How many bytes there were.
        self.size = 0

    def add(self, chunk: bytes) -> None:
        self.size += len(chunk)
        room = self._most_head - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        # Not every time: what is cut off at the front costs moving all the rest.
        if len(self._tail) > 2 * self._most_tail:
            del self._tail[: -self._most_tail]

    def text(self) -> str:
        """Give it as text that can be stored, with a note in place of what is left out."""
        tail = self._tail[-self._most_tail :]
        left_out = self.size - len(self._head) - len(tail)
        if not left_out:
            return _decode(self._head + tail)
        note = f"\n[... {left_out:,} bytes left out ...]\n"
        return _decode(self._head) + note + _decode(tail)


def _decode(data: bytes | bytearray) -> str:
    return data.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
