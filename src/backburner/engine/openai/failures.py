"""What the errors of a model's server mean: does waiting help, and what can be done."""

from datetime import timedelta

from openai import OpenAIError
from pydantic import ValidationError
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelTimeoutError,
)

from backburner.core.errors import EngineFailed

#: Whatever the libraries raise when a server does not do what it should.
ERRORS = (AgentRunError, OpenAIError, ValidationError, ValueError)
LONGEST_QUOTE = 300


def is_rejected(error: Exception) -> bool:
    """See whether the server takes offence at what it was sent, which less of it might change."""
    others = ModelAuthenticationError | ModelNotFoundError
    return isinstance(error, ModelRequestRejectedError) and not isinstance(error, others)


def explain(error: Exception, *, model: str, server: str, key: str) -> EngineFailed:
    """Say what failed, in our own words; the server's could hold the key, or part of it."""
    match error:
        case ModelAuthenticationError():
            message = f"{server} does not accept the key for the model."
            hint = "Check the key in the settings, and that it may use this model."
        case ModelNotFoundError():
            message = f"{server} has no model {model!r}."
            hint = "Check the name of the model and the address in the settings."
        case ModelQuotaExceededError():
            message = f"The account for the model at {server} is used up."
            hint = "Check its plan and its balance."
        case ModelRequestRejectedError():
            message = f"{server} does not take the request: {_quote(error, key)}"
            hint = ""
        case _:
            passing = _passing(error, server=server, key=key)
            return EngineFailed(passing, retry_after=_retry_after(error))
    return EngineFailed(message, hint=hint, permanent=True)


def _passing(error: Exception, *, server: str, key: str) -> str:
    """Say what may be better the next time."""
    match error:
        case ModelRateLimitError():
            return f"{server} was asked too often."
        case ModelTimeoutError():
            return f"The model at {server} does not answer."
        case ModelConnectionError(phase="connect"):
            return f"{server} cannot be reached. Check that it is running."
        case ModelConnectionError():
            return f"The connection to the model at {server} broke off."
        case ModelHTTPError(status_code=status):
            return f"{server} failed with status {status}."
        case ModelAPIError():
            return f"The model at {server} failed: {_quote(error, key)}"
        case _:
            return f"The answer of the model at {server} cannot be read."


def _retry_after(error: Exception) -> timedelta | None:
    seconds = error.retry_after if isinstance(error, ModelAPIError) else None
    return None if seconds is None else timedelta(seconds=max(0.0, seconds))


def _quote(error: Exception, key: str) -> str:
    body = error.body if isinstance(error, ModelAPIError) else None
    said = body.get("message") if isinstance(body, dict) else None
    text = " ".join(str(said or error).split())
    if key:
        text = text.replace(key, "…")
    return text[:LONGEST_QUOTE]
