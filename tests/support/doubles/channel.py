"""A place where nobody is: it keeps what is sent there, or refuses it as it is told to."""

from collections import deque

from backburner.core.errors import ChannelFailed


class RecordingChannel:
    def __init__(self) -> None:
        self.sent: list[tuple[str, str, str]] = []
        #: Raised one after the other before anything is taken.
        self.failures = deque[ChannelFailed]()

    async def send(self, target: str, text: str, *, key: str) -> str | None:
        if self.failures:
            raise self.failures.popleft()
        self.sent.append((target, text, key))
        return f"sent-{len(self.sent)}"
