"""Errors of a model's server, explained: whether a retry helps, and what to do."""

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

from backburner.core.errors import EngineFailed, ModelAccessDenied, ModelUnavailable

#: Everything that the libraries raise when a server misbehaves.
ERRORS = (AgentRunError, OpenAIError, ValidationError, ValueError)
MAX_QUOTE_CHARS = 300


def is_rejected(error: Exception) -> bool:
    """Return whether the server rejected the request itself, so that a shorter one may pass."""
    others = ModelAuthenticationError | ModelNotFoundError
    return isinstance(error, ModelRequestRejectedError) and not isinstance(error, others)


def explain(error: Exception, *, model: str, server: str, key: str) -> EngineFailed:
    """Explain a failure in our own words; the server's may contain the key, or part of it."""
    match error:
        case ModelAuthenticationError():
            message = f"{server} refused the API key."
            hint = "Check the key in the settings, and that it may use this model."
            return ModelAccessDenied(message, hint=hint, permanent=True)
        case ModelNotFoundError():
            message = f"{server} has no model {model!r}."
            hint = "Check the model name and the address in the settings."
        case ModelQuotaExceededError():
            message = f"The account at {server} has no credit left."
            hint = "Check its plan and its balance."
            return ModelAccessDenied(message, hint=hint, permanent=True)
        case ModelRequestRejectedError():
            message = f"{server} rejected the request: {_quote(error, key)}"
            hint = ""
        case _:
            message = _explain_temporary(error, server=server)
            # A response that cannot be read may be due to the request.
            known = ModelUnavailable if isinstance(error, ModelAPIError) else EngineFailed
            return known(message, retry_after=_retry_after(error))
    return EngineFailed(message, hint=hint, permanent=True)


def _explain_temporary(error: Exception, *, server: str) -> str:
    match error:
        case ModelRateLimitError():
            return f"Rate limit reached at {server}."
        case ModelTimeoutError():
            return f"The model at {server} does not respond."
        case ModelConnectionError(phase="connect"):
            return f"{server} cannot be reached. Check that it is running."
        case ModelConnectionError():
            return f"The connection to the model at {server} was lost."
        case ModelHTTPError(status_code=status):
            return f"{server} failed with status {status}."
        case ModelAPIError():
            # Without its words, which may quote the request: users of other work are told as well.
            return f"The model at {server} failed."
        case _:
            return f"The response of the model at {server} cannot be read."


def _retry_after(error: Exception) -> timedelta | None:
    seconds = error.retry_after if isinstance(error, ModelAPIError) else None
    return None if seconds is None else timedelta(seconds=max(0.0, seconds))


def _quote(error: Exception, key: str) -> str:
    body = error.body if isinstance(error, ModelAPIError) else None
    message = body.get("message") if isinstance(body, dict) else None
    text = " ".join(str(message or error).split())
    if key:
        text = text.replace(key, "…")
    return text[:MAX_QUOTE_CHARS]
