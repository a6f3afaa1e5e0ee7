"""What a call of a model used, read from its answer as it passes by."""

import json
from dataclasses import dataclass, field
from typing import Any

from backburner.core.allowance import Usage

#: About as many bytes of words are a token, where nobody has counted them.
BYTES_PER_TOKEN = 4


@dataclass(slots=True)
class Meter:
    """Reads one answer, streamed or whole."""

    streamed: bool
    #: It has come to its end.
    is_whole: bool = False
    _found: dict[str, int] = field(default_factory=dict)
    #: Bytes of words since something was counted.
    _uncounted: int = 0
    #: What is not a whole line yet; or all there is, where it is not streamed.
    _rest: bytes = b""

    def read(self, chunk: bytes) -> None:
        self._rest += chunk
        if self.streamed:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                if line.startswith(b"data:"):
                    self._note(_parse(line.removeprefix(b"data:")))

    def total(self) -> Usage | None:
        """Add up what was used; None: nothing was. An answer may have been cut short."""
        if not self.streamed:
            self._note(_parse(self._rest))
        found = self._found
        if not found:
            return None
        return Usage(
            input=found.get("input_tokens", 0),
            output=found.get("output_tokens", 0) + self._uncounted // BYTES_PER_TOKEN,
            cache_read=found.get("cache_read_input_tokens", 0),
            cache_write=found.get("cache_creation_input_tokens", 0),
        )

    def error(self) -> str:
        """Read the reason out of an answer that is a refusal."""
        error = _parse(self._rest).get("error")
        return str(error.get("message", "")) if isinstance(error, dict) else ""

    def _note(self, said: dict[str, Any]) -> None:
        # A stream says that it has ended; what is not streamed is an answer or none.
        self.is_whole |= said.get("type") == ("message_stop" if self.streamed else "message")
        delta = said.get("delta")
        if isinstance(delta, dict):
            words = (str(delta.get(key, "")) for key in ("text", "thinking", "partial_json"))
            self._uncounted += sum(len(word.encode(errors="replace")) for word in words)
        for holder in (said, said.get("message")):
            usage = holder.get("usage") if isinstance(holder, dict) else None
            if isinstance(usage, dict):
                # What comes later says how much it has become.
                self._found |= {key: n for key, n in usage.items() if isinstance(n, int)}
                self._uncounted = 0


def _parse(text: bytes) -> dict[str, Any]:
    try:
        said = json.loads(text)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
