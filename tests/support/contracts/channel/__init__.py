"""What every channel promises: one function for each promise.

Each takes a `Subject`: a channel, and the other side of it as a double on loopback.
"""

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction

from support.contracts.channel import failing, sending
from support.contracts.channel.subject import Received, Subject, Trouble

Promise = Callable[[Subject], Awaitable[None]]

#: Every public function of these modules, by its name.
PROMISES: dict[str, Promise] = {
    name: value
    for module in (sending, failing)
    for name, value in vars(module).items()
    if iscoroutinefunction(value)
    and value.__module__ == module.__name__
    and not name.startswith("_")
}

__all__ = ["PROMISES", "Promise", "Received", "Subject", "Trouble"]
