"""Failures of the model and of the program, explained: what is wrong, and what to do."""

from backburner.core.errors import (
    EngineFailed,
    ImagesRefused,
    ModelAccessDenied,
    ModelUnavailable,
    SessionGone,
)
from backburner.engine.claude.call import ModelFailure

#: Parts of the API's messages for a request that is too long.
TOO_LONG = ("prompt is too long", "exceed context limit", "request_too_large")
RUN_SETUP = "Run `backburner setup` and enter another key."
DENIED = {
    401: ("The model's API refused the key.", RUN_SETUP),
    402: ("The account of the model has no credit left.", "Add credit with its provider."),
    403: ("The key of the model has no permission for this.", RUN_SETUP),
}
NOT_FOUND = "The model was not found."
CHOOSE_ANOTHER = "Run `backburner setup` and choose another."
LIMITS = {
    "memory": "it used too much memory",
    "processes": "it started too many processes",
    "disk": "the disk of the server is almost full",
}
TEMPORARY = (408, 409, 425, 429)


def explain_model(
    failure: ModelFailure, *, resumed: bool, has_called: bool = False, has_images: bool = False
) -> EngineFailed:
    """Explain a failed call of the model.

    `has_called`: tools were called in this turn before; `has_images`: its prompt has images.
    """
    status, message = failure.status, failure.message
    if status is None:
        return ModelUnavailable(message)
    if resumed and (status == 413 or any(text in message.lower() for text in TOO_LONG)):
        return SessionGone("The session has become too long for the model.")
    if has_images and status == 400 and "image" in message.lower() and not has_called:
        return ImagesRefused(permanent=True)
    # Before that it was sent with every request; but calls may not be made again.
    if resumed and status == 400 and "image" in message.lower() and not has_called:
        return SessionGone("The session has an image that the model refuses.")
    if status in DENIED:
        refusal, hint = DENIED[status]
        return ModelAccessDenied(refusal, hint=hint, permanent=True)
    if status == 404:
        return EngineFailed(NOT_FOUND, hint=CHOOSE_ANOTHER, permanent=True)
    if status in TEMPORARY or status >= 500:
        busy = "Rate limit of the model reached." if status == 429 else ""
        return ModelUnavailable(busy, retry_after=failure.retry_after)
    return EngineFailed(f"The model refused the request: {message[:300]}", permanent=True)


def explain_program(message: str, *, resumed: bool, limit: str = "") -> EngineFailed:
    """Explain why the program ended. `limit`: what it used too much of."""
    if limit:
        return EngineFailed(f"Claude Code was ended: {LIMITS.get(limit, LIMITS['disk'])}.")
    if resumed and "no conversation found" in message.lower():
        return SessionGone()
    return EngineFailed("Claude Code ended before the turn was complete.")
