"""Try a model with a request for one word, before anything depends on it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from backburner.core.errors import EngineFailed
from backburner.engine.addresses import check_address, is_loopback
from backburner.ports import Trial, Trouble

#: Of a server's own error messages.
MAX_QUOTE_CHARS = 200
#: Of one server, as many as the API of Claude lists at once.
MAX_MODELS = 1000
#: The API accepts the token of a subscription only with this as the system prompt.
CLAUDE_CODE_IDENTITY = "You are Claude Code, Anthropic's official CLI for Claude."
_LIST: tuple[str, Mapping[str, int]] = ("/models", {})
_QUESTION = [{"role": "user", "content": "Say yes."}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A model, and how to reach it."""

    engine: str
    model: str
    address: str
    key: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    @property
    def secret(self) -> str | None:
        return self.key or self.token


async def try_model(target: Target, *, timeout_seconds: float = 60.0) -> Trial:
    if target.engine == "demo":
        return Trial("The demo needs no model.")
    try:
        # The timeout of a request is one of each of its steps.
        async with asyncio.timeout(timeout_seconds):
            response = await _ask(target, timeout_seconds)
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
        return _unreachable(target, error)
    return _to_trial(target, response)


async def list_models(target: Target, *, timeout_seconds: float = 60.0) -> tuple[str, ...]:
    """List the names of the models that a server offers."""
    path, query = ("/v1/models", {"limit": MAX_MODELS}) if target.engine == "claude" else _LIST
    try:
        async with asyncio.timeout(timeout_seconds), _client(target, timeout_seconds) as client:
            response = await client.get(path, params=query, headers=_headers(target))
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
        raise _as_failure(_unreachable(target, error)) from None
    if not response.is_success:
        raise _as_failure(_to_trial(target, response))
    offered = _object(response).get("data")
    if not isinstance(offered, list):
        raise _as_failure(_not_an_api(target))
    names = (model.get("id") for model in offered if isinstance(model, dict))
    shown = (name for name in names if isinstance(name, str) and _can_be_shown(target, name))
    return tuple(sorted(shown)[:MAX_MODELS])


def _can_be_shown(target: Target, name: str) -> bool:
    """Refuse names that are none: a server may answer with what it was sent."""
    is_name = name.isprintable() and len(name) <= MAX_QUOTE_CHARS
    return is_name and not (target.secret and target.secret in name)


def _client(target: Target, timeout_seconds: float) -> httpx2.AsyncClient:
    address = check_address(target.address)
    # A server on this machine is not reached through a proxy.
    return httpx2.AsyncClient(
        base_url=address, timeout=timeout_seconds, trust_env=not is_loopback(address)
    )


async def _ask(target: Target, timeout_seconds: float) -> httpx2.Response:
    headers = _headers(target)
    # Redirects are not followed: the secret is for this address.
    async with _client(target, timeout_seconds) as client:
        if target.engine == "claude":
            return await client.post("/v1/messages", json=_claude_body(target), headers=headers)
        body = {"model": target.model, "messages": _QUESTION, "max_tokens": 1}
        response = await client.post("/chat/completions", json=body, headers=headers)
        if response.status_code == 400 and "max_completion_tokens" in response.text:
            # Newer models of some servers use another name for it.
            body["max_completion_tokens"] = body.pop("max_tokens")
            response = await client.post("/chat/completions", json=body, headers=headers)
        return response


def _headers(target: Target) -> dict[str, str]:
    if target.engine != "claude":
        return {"authorization": f"Bearer {target.key}"} if target.key else {}
    version = {"anthropic-version": "2023-06-01"}
    if target.token:
        beta = {"anthropic-beta": "oauth-2025-04-20"}
        return {**version, **beta, "authorization": f"Bearer {target.token}"}
    return {**version, "x-api-key": target.key or ""}


def _claude_body(target: Target) -> dict[str, Any]:
    body: dict[str, Any] = {"model": target.model, "max_tokens": 1, "messages": _QUESTION}
    if target.token:
        body["system"] = [{"type": "text", "text": CLAUDE_CODE_IDENTITY}]
    return body


def _to_trial(target: Target, response: httpx2.Response) -> Trial:
    status, message = response.status_code, _error_message(target, response)
    if response.is_success:
        key = "content" if target.engine == "claude" else "choices"
        works = isinstance(_object(response).get(key), list)
        return Trial(f"{target.model} answers.") if works else _not_an_api(target)
    if status in (401, 403):
        secret = "token" if target.token else "key"
        refusal = f"The {secret} was refused" if target.secret else "A key is needed"
        return Trial(
            f"{refusal} ({status}).", Trouble.REFUSED, f"Check the {secret}, and enter it again."
        )
    if status in (400, 404) and "model" in message.casefold():
        words = f"Model not found: {target.model!r}{_quoted(message)}."
        return Trial(words, Trouble.MODEL, "Choose a model that the server offers.")
    if status == 404 or response.is_redirect:
        return _not_an_api(target)
    if status in (402, 429):
        words = f"Limit reached ({status}){_quoted(message)}."
        return Trial(words, Trouble.LIMIT, "Wait, or check the limits of the account.")
    words = f"The server responded with an error ({status}){_quoted(message)}."
    return Trial(words, Trouble.OTHER)


def _unreachable(target: Target, error: Exception) -> Trial:
    if isinstance(error, httpx2.TimeoutException | TimeoutError):
        words = f"{target.address} does not respond in time."
    elif isinstance(error, httpx2.TransportError):
        words = f"{target.address} cannot be reached{_quoted(_clean(target, str(error)))}."
    else:
        words = f"The response of {target.address} cannot be read."
    return Trial(words, Trouble.UNREACHABLE, "Check the address, and that the server is running.")


def _not_an_api(target: Target) -> Trial:
    hint = "It often ends in /v1." if target.engine == "openai" else "Leave the address out."
    words = f"{target.address} does not respond as a model API does."
    return Trial(words, Trouble.UNREACHABLE, f"Check the address. {hint}")


def _error_message(target: Target, response: httpx2.Response) -> str:
    """Find the error message, wherever servers put it, without our secret in it."""
    value: Any = _object(response)
    for key in ("error", "message", "detail"):
        if isinstance(value, Mapping) and key in value:
            value = value[key]
    return _clean(target, value) if isinstance(value, str) else ""


def _clean(target: Target, text: str) -> str:
    if target.secret:
        text = text.replace(target.secret, "[secret]")
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(shown.split())[:MAX_QUOTE_CHARS].rstrip(".")


def _quoted(message: str) -> str:
    return f": {message}" if message else ""


def _object(response: httpx2.Response) -> dict[str, Any]:
    try:
        value = response.json()
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _as_failure(trial: Trial) -> EngineFailed:
    return EngineFailed(
        trial.message, hint=trial.hint, permanent=trial.trouble is not Trouble.LIMIT
    )
