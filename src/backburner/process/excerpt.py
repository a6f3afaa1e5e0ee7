"""The beginning and the end of a long output, kept while it is read."""

import re
from collections.abc import Iterable

#: In place of a secret.
REDACTED = "[sign-in]"


class Excerpt:
    """Keeps a quarter of its limit from the beginning, the rest from the end, where results are.

    Secrets are replaced before anything is cut, or the parts of one would stay.
    """

    def __init__(self, limit: int, secrets: Iterable[str] = ()) -> None:
        self._max_head = limit // 4
        self._max_tail = limit - self._max_head
        self._head = bytearray()
        self._tail = bytearray()
        # Longer ones first: one may begin with another.
        hidden = sorted((secret.encode() for secret in secrets), key=len, reverse=True)
        self._secrets = re.compile(b"|".join(map(re.escape, hidden))) if hidden else None
        self._longest = len(hidden[0]) if hidden else 0
        #: May be the beginning of a secret.
        self._held = b""
        self._redacted_size = 0
        #: The bytes that were added, kept or not.
        self.size = 0

    def add(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self._keep(self._redact(self._secrets, chunk) if self._secrets else chunk)

    def text(self) -> str:
        """Return text that can be stored, with a note in place of the bytes left out."""
        if self._secrets:
            self._keep(self._secrets.sub(REDACTED.encode(), self._held))
            self._held = b""
        tail = self._tail[-self._max_tail :]
        left_out = self._redacted_size - len(self._head) - len(tail)
        if not left_out:
            return _decode(self._head + tail)
        note = f"\n[... {left_out:,} bytes left out ...]\n"
        return _decode(self._head) + note + _decode(tail)

    def _keep(self, chunk: bytes) -> None:
        self._redacted_size += len(chunk)
        room = self._max_head - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        # Not every time: cutting bytes off the front moves all the others.
        if len(self._tail) > 2 * self._max_tail:
            del self._tail[: -self._max_tail]

    def _redact(self, secrets: re.Pattern[bytes], chunk: bytes) -> bytes:
        """Replace the secrets that begin where even the longest one would be whole by now."""
        data, redacted, at = self._held + chunk, bytearray(), 0
        end = max(0, len(data) - self._longest + 1)
        for found in secrets.finditer(data):
            if found.start() >= end:
                break
            redacted += data[at : found.start()] + REDACTED.encode()
            at = found.end()
        end = max(at, end)
        self._held = data[end:]
        return bytes(redacted + data[at:end])


def _decode(data: bytes | bytearray) -> str:
    return data.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
