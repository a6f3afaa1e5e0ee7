"""Why a turn came to nothing, in words that say what to do."""

from backburner.core.errors import EngineFailed, SessionGone
from backburner.engine.claude.call import Trouble

#: How models say that they cannot read as much as they were given.
TOO_LONG = ("prompt is too long", "exceed context limit", "request_too_large")
SET_UP = "Run `backburner setup` and give it another."
REFUSED = {
    401: ("The model did not accept its key.", SET_UP),
    402: ("The account of the model has nothing left to spend.", "Add to it where it is kept."),
    403: ("The model's key may not be used for this.", SET_UP),
    404: ("There is no such model.", "Run `backburner setup` and choose another."),
}
BUSY = (408, 409, 425, 429)


def of_model(trouble: Trouble, *, remembers: bool) -> EngineFailed:
    """Say why the model did not answer."""
    status, said = trouble.status, trouble.message
    if status is None:
        return EngineFailed(said)
    if remembers and (status == 413 or any(words in said.lower() for words in TOO_LONG)):
        return SessionGone("What I remember of this has become too long for the model.")
    if status in REFUSED:
        words, hint = REFUSED[status]
        return EngineFailed(words, hint=hint, permanent=True)
    if status in BUSY or status >= 500:
        busy = "The model allows no more calls for now." if status == 429 else _OVERLOADED
        return EngineFailed(busy, retry_after=trouble.retry_after)
    return EngineFailed(f"The model refused the request: {said[:300]}", permanent=True)


def of_program(said: str, *, remembers: bool) -> EngineFailed:
    """Say why the program did not do its work."""
    if remembers and "no conversation found" in said.lower():
        return SessionGone()
    return EngineFailed("The agent's program ended before it was done.")


_OVERLOADED = "The model has trouble of its own just now."
