"""A channel under test, and messages for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum, auto
from typing import Any, Protocol

import pytest

from backburner.core.errors import ChannelFailed
from backburner.core.ids import NoticeId, UserId, new_notice_id
from backburner.core.notice import NoticeKind
from backburner.ports import Channel, ChannelMessage

#: Of anything that a channel does; only what is broken takes as long.
BOUND = 20


class Trouble(StrEnum):
    """What the other side does with the next message, instead of taking it."""

    BUSY = auto()  #: Asks to wait, without a time.
    DOWN = auto()  #: An error of its own.
    REFUSES = auto()  #: Refuses whoever sends.
    UNFIT = auto()  #: Does not take this message.
    GONE = auto()  #: Does not know the target any more.
    NONSENSE = auto()  #: Answers with what nobody understands.
    HANGS_UP = auto()  #: Ends the connection without an answer.
    SILENT = auto()  #: Never answers.


#: After these, another attempt may succeed.
PASSING = (Trouble.BUSY, Trouble.DOWN, Trouble.HANGS_UP)
PERMANENT = (Trouble.REFUSES, Trouble.UNFIT, Trouble.GONE)


@dataclass(frozen=True)
class Received:
    """A message as somebody there gets it; a channel may have cut its text."""

    title: str
    text: str


class Subject(Protocol):
    """A channel, and the other side of it."""

    @property
    def channel(self) -> Channel: ...

    @property
    def user(self) -> UserId: ...

    @property
    def target(self) -> str:
        """Where messages of this user go."""

    @property
    def secrets(self) -> Sequence[str]:
        """What no error may tell."""

    def received(self) -> Sequence[Received]:
        """List what has arrived, oldest first."""

    def trouble(self, trouble: Trouble, *, retry_after: timedelta | None = None) -> None:
        """Let the next message meet with trouble."""

    async def reached(self) -> None:
        """Wait until the other side has got a message, whatever it does with it."""

    async def shut_down(self) -> None:
        """Let the other side be unreachable from now on."""


def message(subject: Subject, text: str = "All green.", **more: Any) -> ChannelMessage:
    notice_id: NoticeId = new_notice_id()
    usual: dict[str, Any] = {
        "user_id": subject.user,
        "target": subject.target,
        "key": notice_id,
        "title": "watch",
        "text": text,
        "kind": NoticeKind.RESULT,
        "notice_id": notice_id,
        "address": "/c/c_1",
        "where": "http://localhost/c/c_1",
    }
    return ChannelMessage(**(usual | more))


async def failure(subject: Subject, sent: ChannelMessage | None = None) -> ChannelFailed:
    """Send a message that cannot arrive, and return how the channel says so."""
    with pytest.raises(ChannelFailed) as caught:
        await subject.channel.send(sent or message(subject))
    return caught.value
