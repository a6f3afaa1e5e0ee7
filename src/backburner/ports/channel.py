"""Places where people are told things."""

from typing import Protocol


class Channel(Protocol):
    async def send(self, target: str, text: str, *, key: str) -> str | None:
        """Send one part and give its id there. The same `key` is the same part, sent again.

        Raises `ChannelFailed`, permanent where trying again cannot help.
        """
