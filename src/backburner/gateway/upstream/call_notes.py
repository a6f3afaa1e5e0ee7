"""What happens during a call that its result depends on."""

from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(eq=False)
class CallNotes:
    #: Notes of ours, which follow the text of the result.
    texts: list[str] = field(default_factory=list)
    #: A server may have got the call.
    is_sent: bool = False


#: Of the call that a message belongs to; the SDK carries it along over HTTP.
current_call: ContextVar[CallNotes | None] = ContextVar("current_call", default=None)
