"""A place where nobody is: it keeps what is sent there, or refuses it as it is told to."""

from collections import deque

from backburner.core.errors import ChannelFailed
from backburner.ports import ChannelMessage


class RecordingChannel:
    def __init__(self) -> None:
        self.sent: list[tuple[str, str, str]] = []
        #: Raised one after the other before anything is taken.
        self.failures = deque[ChannelFailed]()

    async def send(self, message: ChannelMessage) -> str | None:
        if self.failures:
            raise self.failures.popleft()
        self.sent.append((message.target, message.as_text(), message.key))
        return f"sent-{len(self.sent)}"

    async def close(self) -> None:
        """Nothing is open."""
