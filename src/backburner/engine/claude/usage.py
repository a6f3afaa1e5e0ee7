"""The tokens of a model call, read from its response while it passes through."""

import json
from dataclasses import dataclass, field
from typing import Any

from backburner.core.allowance import Usage

#: To estimate tokens that the server has not reported.
BYTES_PER_TOKEN = 4


@dataclass(slots=True)
class UsageMeter:
    """Reads one response, streamed or not."""

    streamed: bool
    #: The response reached its end.
    is_complete: bool = False
    #: Why the model ended its response.
    stop_reason: str | None = None
    _reported: dict[str, int] = field(default_factory=dict)
    #: Bytes of text since the last report.
    _uncounted_bytes: int = 0
    #: An incomplete line; or the whole response, if it is not streamed.
    _rest: bytes = b""

    def read(self, chunk: bytes) -> None:
        self._rest += chunk
        if self.streamed:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                if line.startswith(b"data:"):
                    self._read_event(_parse(line.removeprefix(b"data:")))

    def total(self) -> Usage | None:
        """Return the tokens so far, also of a response that was cut; None if there are none."""
        if not self.streamed:
            self._read_event(_parse(self._rest))
        reported = self._reported
        if not reported:
            return None
        return Usage(
            input=reported.get("input_tokens", 0),
            output=reported.get("output_tokens", 0) + self._uncounted_bytes // BYTES_PER_TOKEN,
            cache_read=reported.get("cache_read_input_tokens", 0),
            cache_write=reported.get("cache_creation_input_tokens", 0),
        )

    def error(self) -> str:
        """Read the message of an error response."""
        error = _parse(self._rest).get("error")
        return str(error.get("message", "")) if isinstance(error, dict) else ""

    def _read_event(self, event: dict[str, Any]) -> None:
        # A stream reports its end; a response that is not streamed is complete or none.
        self.is_complete |= event.get("type") == ("message_stop" if self.streamed else "message")
        delta = event.get("delta")
        if isinstance(delta, dict):
            texts = (str(delta.get(key, "")) for key in ("text", "thinking", "partial_json"))
            self._uncounted_bytes += sum(len(text.encode(errors="replace")) for text in texts)
        for holder in (event, delta):
            if isinstance(holder, dict) and isinstance(holder.get("stop_reason"), str):
                self.stop_reason = holder["stop_reason"]
        for holder in (event, event.get("message")):
            usage = holder.get("usage") if isinstance(holder, dict) else None
            if isinstance(usage, dict):
                # Later reports are totals.
                self._reported |= {key: n for key, n in usage.items() if isinstance(n, int)}
                self._uncounted_bytes = 0


def _parse(text: bytes) -> dict[str, Any]:
    try:
        event = json.loads(text)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}
