"""Asking a model for one word, to see whether it answers before anything depends on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from backburner.core.errors import EngineFailed
from backburner.engine.addresses import check_address, is_loopback
from backburner.ports import Trial, Trouble

#: A local model may have to be read from a disk first.
PATIENCE = 60.0
#: Of what a server says of its own errors.
LONGEST_QUOTE = 200
#: A subscription's token is taken from whoever says this first.
IDENTITY = "You are Claude Code, Anthropic's official CLI for Claude."
_QUESTION = [{"role": "user", "content": "Say yes."}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A model, and what it takes to ask it."""

    engine: str
    model: str
    address: str
    key: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    @property
    def secret(self) -> str | None:
        return self.key or self.token


async def try_model(target: Target, *, patience: float = PATIENCE) -> Trial:
    """Ask for one word; whatever comes of it is told in words."""
    if target.engine == "demo":
        return Trial("The demo needs no model.")
    try:
        answer = await _ask(target, patience)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return _unreachable(target, error)
    return _judge(target, answer)


async def list_models(target: Target, *, patience: float = PATIENCE) -> tuple[str, ...]:
    """List the models that a server offers, by name."""
    try:
        async with _client(target, patience) as client:
            answer = await client.get("/models", headers=_headers(target))
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise _as_failure(_unreachable(target, error)) from None
    if not answer.is_success:
        raise _as_failure(_judge(target, answer))
    offered = _object(answer).get("data")
    if not isinstance(offered, list):
        raise _as_failure(_not_an_api(target))
    names = (one.get("id") for one in offered if isinstance(one, dict))
    return tuple(sorted(name for name in names if isinstance(name, str)))


def _client(target: Target, patience: float) -> httpx2.AsyncClient:
    address = check_address(target.address)
    # What is on this machine is not asked for by way of a proxy.
    return httpx2.AsyncClient(
        base_url=address, timeout=patience, trust_env=not is_loopback(address)
    )


async def _ask(target: Target, patience: float) -> httpx2.Response:
    headers = _headers(target)
    # Redirects are not followed: the secret is for this address.
    async with _client(target, patience) as client:
        if target.engine == "claude":
            return await client.post("/v1/messages", json=_to_claude(target), headers=headers)
        asked = {"model": target.model, "messages": _QUESTION, "max_tokens": 1}
        answer = await client.post("/chat/completions", json=asked, headers=headers)
        if answer.status_code == 400 and "max_completion_tokens" in answer.text:
            # Newer models of some servers know it by another name.
            asked["max_completion_tokens"] = asked.pop("max_tokens")
            answer = await client.post("/chat/completions", json=asked, headers=headers)
        return answer


def _headers(target: Target) -> dict[str, str]:
    if target.engine != "claude":
        return {"authorization": f"Bearer {target.key}"} if target.key else {}
    version = {"anthropic-version": "2023-06-01"}
    if target.token:
        beta = {"anthropic-beta": "oauth-2025-04-20"}
        return {**version, **beta, "authorization": f"Bearer {target.token}"}
    return {**version, "x-api-key": target.key or ""}


def _to_claude(target: Target) -> dict[str, Any]:
    asked: dict[str, Any] = {"model": target.model, "max_tokens": 1, "messages": _QUESTION}
    if target.token:
        asked["system"] = [{"type": "text", "text": IDENTITY}]
    return asked


def _judge(target: Target, answer: httpx2.Response) -> Trial:
    status, said = answer.status_code, _complaint(target, answer)
    if answer.is_success:
        key = "content" if target.engine == "claude" else "choices"
        works = isinstance(_object(answer).get(key), list)
        return Trial(f"{target.model} answers.") if works else _not_an_api(target)
    if status in (401, 403):
        what = "token" if target.token else "key"
        given = f"The {what} was refused" if target.secret else "A key is needed"
        return Trial(
            f"{given} ({status}).", Trouble.REFUSED, f"Check the {what}, and give it anew."
        )
    if status in (400, 404) and "model" in said.casefold():
        words = f"There is no model {target.model!r} there{_quoted(said)}."
        return Trial(words, Trouble.MODEL, "Choose one that is there.")
    if status == 404 or answer.is_redirect:
        return _not_an_api(target)
    if status in (402, 429):
        words = f"It does not answer more for now ({status}){_quoted(said)}."
        return Trial(words, Trouble.LIMIT, "Wait a little, or see what the account may use.")
    return Trial(f"It answers with an error ({status}){_quoted(said)}.", Trouble.OTHER)


def _unreachable(target: Target, error: Exception) -> Trial:
    if isinstance(error, httpx2.TimeoutException):
        words = f"{target.address} does not answer in time."
    elif isinstance(error, httpx2.TransportError):
        words = f"{target.address} cannot be reached{_quoted(_clean(target, str(error)))}."
    else:
        words = f"What {target.address} answers cannot be read."
    return Trial(words, Trouble.UNREACHABLE, "See that the address is right and the server runs.")


def _not_an_api(target: Target) -> Trial:
    hint = "It often ends in /v1." if target.engine == "openai" else "Leave the address out."
    words = f"What answers at {target.address} is not the API of a model."
    return Trial(words, Trouble.UNREACHABLE, f"Check the address. {hint}")


def _complaint(target: Target, answer: httpx2.Response) -> str:
    """Find what the server says is wrong, wherever servers put it, without our secret in it."""
    found: Any = _object(answer)
    for key in ("error", "message", "detail"):
        if isinstance(found, Mapping) and key in found:
            found = found[key]
    return _clean(target, found) if isinstance(found, str) else ""


def _clean(target: Target, text: str) -> str:
    if target.secret:
        text = text.replace(target.secret, "[secret]")
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(shown.split())[:LONGEST_QUOTE].rstrip(".")


def _quoted(said: str) -> str:
    return f": {said}" if said else ""


def _object(answer: httpx2.Response) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _as_failure(trial: Trial) -> EngineFailed:
    return EngineFailed(trial.words, hint=trial.hint, permanent=trial.trouble is not Trouble.LIMIT)
