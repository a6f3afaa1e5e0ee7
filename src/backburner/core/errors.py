"""Every error that is raised on purpose.

    BackburnerError
    ├── BadRequest            invalid input; nothing was changed
    │   ├── BadSchedule         a schedule, a time or a time zone
    │   ├── BadOutcome          the outcome an agent ended its run with
    │   ├── BadAnswer           an answer that is not one of the options
    │   ├── TooLarge            text or state above its limit
    │   └── BadSetting          the program's own configuration
    ├── NotFound              no such object, or it belongs to another user
    ├── NotAllowed            the object exists, but the caller lacks permission
    ├── Conflict              the current state does not allow it; nothing was changed
    │   └── LimitReached        a limit on the number of objects
    │       └── TooManyAttempts   too many attempts to sign in
    ├── Fenced                another holder has the turn; this one must discard its work
    └── MachineFailed         a part that does I/O failed; `permanent`: retrying cannot help
        ├── EngineFailed        the agent or its model
        │   ├── ModelUnavailable    the model's provider has trouble; the work is not at fault
        │   ├── ModelAccessDenied   the key was refused, or the account has no credit left
        │   ├── ImagesRefused       the model does not accept the images of the request
        │   └── SessionGone         the agent's session no longer exists
        ├── ConnectionFailed    a connection to external tools
        │   ├── SignedOut           its owner has to sign in again
        │   └── CallInDoubt         a call that may have been made, or may not
        ├── VaultLocked         secrets cannot be opened: the master key is missing or another one
        │   └── SecretDamaged       a stored secret is not what was sealed for this owner and name
        ├── ChannelFailed       a message that could not be sent
        │   └── TargetGone          its target does not exist any more
        ├── StoreFailed         the database
        │   └── StoreBusy         another transaction holds a lock
        └── ProcessFailed       a program that could not be started or stopped

The default message of an error is its docstring. Facts are attributes, not text to be parsed.
"""

from datetime import timedelta


class BackburnerError(Exception):
    """Something went wrong."""

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        #: The problem, in one sentence.
        self.message = message or self.__doc__ or ""
        #: The next step for the user, in one sentence; empty if the message is enough.
        self.hint = hint
        super().__init__(f"{self.message} {hint}" if hint else self.message)


class BadRequest(BackburnerError):
    """The request is invalid."""


class BadSchedule(BadRequest):
    """The schedule is invalid."""


class BadOutcome(BadRequest):
    """The run did not end with a valid outcome."""


class BadAnswer(BadRequest):
    """The answer is not one of the options."""

    def __init__(self, message: str = "", *, hint: str = "", options: tuple[str, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.options = options


class TooLarge(BadRequest):
    """The input is too large."""

    def __init__(self, label: str, *, size: int, limit: int, unit: str = "bytes") -> None:
        super().__init__(
            f"{label} has {size:,} {unit}; the limit is {limit:,}.",
            hint="Shorten it, or split it into parts.",
        )
        self.size = size
        self.limit = limit


class BadSetting(BadRequest):
    """A setting is invalid."""


class NotFound(BackburnerError):
    """There is nothing here with that id."""


class NotAllowed(BackburnerError):
    """You do not have permission to do that."""


class Conflict(BackburnerError):
    """This is not possible in the current state."""


class LimitReached(Conflict):
    """Limit reached."""


class TooManyAttempts(LimitReached):
    """Too many attempts to sign in."""

    def __init__(
        self, message: str = "", *, hint: str = "", retry_after: timedelta = timedelta()
    ) -> None:
        super().__init__(message, hint=hint)
        #: How long to wait before the next attempt.
        self.retry_after = retry_after


class Fenced(BackburnerError):
    """Another holder has taken over this turn."""


class MachineFailed(BackburnerError):
    """An external service or program failed."""

    def __init__(
        self,
        message: str = "",
        *,
        hint: str = "",
        permanent: bool = False,
        retry_after: timedelta | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        #: Retrying cannot help.
        self.permanent = permanent
        #: How long the other side asked us to wait before the next attempt.
        self.retry_after = retry_after


class EngineFailed(MachineFailed):
    """The agent failed."""


class ModelUnavailable(EngineFailed):
    """The model is temporarily unavailable."""


class ModelAccessDenied(EngineFailed):
    """The model's provider refused the key."""


class ImagesRefused(EngineFailed):
    """The model refused the images of the request."""


class SessionGone(EngineFailed):
    """The agent's session no longer exists."""


class ConnectionFailed(MachineFailed):
    """A connection failed."""


class SignedOut(ConnectionFailed):
    """The connection needs its owner to sign in again."""

    def __init__(self, message: str = "", *, hint: str = "", scopes: tuple[str, ...] = ()) -> None:
        super().__init__(message, hint=hint, permanent=True)
        #: Scopes that the server wants; empty: it refuses the sign-in itself.
        self.scopes = scopes


class CallInDoubt(ConnectionFailed):
    """The call may have been made, or may not."""


class VaultLocked(MachineFailed):
    """The master key that seals secrets is missing, or is another one."""


class SecretDamaged(VaultLocked):
    """A stored secret is damaged, or was sealed for another owner or name."""


class ChannelFailed(MachineFailed):
    """A message could not be sent."""


class TargetGone(ChannelFailed):
    """The target of a message no longer exists."""


class StoreFailed(MachineFailed):
    """The database failed."""


class StoreBusy(StoreFailed):
    """Another transaction holds a lock."""


class ProcessFailed(MachineFailed):
    """A program could not be started or stopped."""
