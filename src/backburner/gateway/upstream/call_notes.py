"""Notes of a call in progress, on which its result depends."""

from contextvars import ContextVar
from dataclasses import dataclass, field

from backburner.core.errors import ConnectionFailed


@dataclass(eq=False)
class CallNotes:
    #: Notes of ours, which follow the text of the result.
    texts: list[str] = field(default_factory=list)
    #: A server may have got the call.
    is_sent: bool = False
    #: Nobody waits for the call any more; the SDK may go on with its request all the same.
    is_given_up: bool = False

    def give_up(self) -> bool:
        """Keep the call from being sent from now on; return whether a server may have got it."""
        self.is_given_up = True
        return self.is_sent

    def check_wanted(self) -> None:
        if self.is_given_up:
            raise ConnectionFailed("The call was given up before it was sent.")


#: Of the call that a message belongs to; the SDK carries it along over HTTP.
current_call: ContextVar[CallNotes | None] = ContextVar("current_call", default=None)
