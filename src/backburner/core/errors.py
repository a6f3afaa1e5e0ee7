"""Everything raised on purpose.

    BackburnerError
    ├── BadRequest            it cannot be understood or is out of bounds; nothing was changed
    │   ├── BadSchedule         a schedule, a time or a zone
    │   ├── BadOutcome          what an agent ended its run with
    │   ├── BadAnswer           an answer that is not among the options
    │   ├── TooLarge            text or state above its limit
    │   └── BadSetting          the program's own configuration
    ├── NotFound              there is no such thing, or it is somebody else's
    ├── NotAllowed            it is there, but not for this caller
    ├── Conflict              it does not fit what is so now; nothing was changed
    │   └── LimitReached        there is already as much of it as there may be
    │       └── TooManyAttempts   somebody tries to sign in too often
    ├── Fenced                another holder has the turn; whatever this one has, it must drop
    └── MachineFailed         a part that does I/O could not; `permanent`: trying again is no use
        ├── EngineFailed        the agent or its model
        │   └── SessionGone       what the agent remembered is no longer there
        ├── ConnectionFailed    a connection to somebody's tools
        ├── ChannelFailed       a message that could not be sent
        ├── StoreFailed         the database
        └── ProcessFailed       a program that could not be started, or not be ended

The default message of each is its docstring. Facts are attributes, not text to be parsed.
"""

from datetime import timedelta


class BackburnerError(Exception):
    """Something went wrong."""

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        #: What is wrong, in a sentence.
        self.message = message or self.__doc__ or ""
        #: What would be right, in a sentence; empty where the message says it all.
        self.hint = hint
        super().__init__(f"{self.message} {hint}" if hint else self.message)


class BadRequest(BackburnerError):
    """That cannot be understood."""


class BadSchedule(BadRequest):
    """That is not a schedule."""


class BadOutcome(BadRequest):
    """The run did not end with a valid outcome."""


class BadAnswer(BadRequest):
    """That is not one of the options."""

    def __init__(self, message: str = "", *, hint: str = "", options: tuple[str, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.options = options


class TooLarge(BadRequest):
    """That is larger than is allowed."""

    def __init__(self, what: str, *, size: int, limit: int, unit: str = "bytes") -> None:
        super().__init__(
            f"{what} has {size:,} {unit}; the limit is {limit:,}.", hint="Send less, or in parts."
        )
        self.size = size
        self.limit = limit


class BadSetting(BadRequest):
    """A setting is wrong."""


class NotFound(BackburnerError):
    """There is nothing here with that id."""


class NotAllowed(BackburnerError):
    """That is not yours to do."""


class Conflict(BackburnerError):
    """That does not fit the way things are now."""


class LimitReached(Conflict):
    """There is already as much of this as there may be."""


class TooManyAttempts(LimitReached):
    """There were too many attempts to sign in."""

    def __init__(
        self, message: str = "", *, hint: str = "", retry_after: timedelta = timedelta()
    ) -> None:
        super().__init__(message, hint=hint)
        #: How long there is no use in trying.
        self.retry_after = retry_after


class Fenced(BackburnerError):
    """Another holder has taken over this turn."""


class MachineFailed(BackburnerError):
    """A part that talks to the outside failed."""

    def __init__(
        self,
        message: str = "",
        *,
        hint: str = "",
        permanent: bool = False,
        retry_after: timedelta | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        #: Trying again cannot help.
        self.permanent = permanent
        #: How long the other side asked to be left alone.
        self.retry_after = retry_after


class EngineFailed(MachineFailed):
    """The agent could not do its work."""


class SessionGone(EngineFailed):
    """What the agent remembered is no longer there."""


class ConnectionFailed(MachineFailed):
    """A connection did not work."""


class ChannelFailed(MachineFailed):
    """A message could not be sent."""


class StoreFailed(MachineFailed):
    """The database did not do its work."""


class ProcessFailed(MachineFailed):
    """A program could not be started or ended."""
