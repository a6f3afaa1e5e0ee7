"""The prompts of `backburner setup`, for everything that its options leave open."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import click

from backburner.app.doctor import list_models
from backburner.core.errors import EngineFailed
from backburner.settings import CLAUDE_ADDRESS, CLAUDE_MODEL, clean_address, clean_secret, is_near

KINDS = {
    "claude-key": "Claude, with an API key",
    "claude-token": "Claude, with a subscription token (run `claude setup-token` to get one)",
    "openai": "a local model, or any server with an OpenAI-compatible API",
    "demo": "the demo, without a model",
}
#: In a sentence.
MAX_MODELS_SHOWN = 20
LOCAL_ADDRESS = "http://127.0.0.1:11434/v1"


def is_terminal() -> bool:
    return sys.stdin.isatty()


def ask_kind() -> str:
    _require_terminal("--kind")
    kinds = list(KINDS)
    for number, kind in enumerate(kinds, 1):
        click.echo(f"  {number}  {KINDS[kind]}")
    numbers = [str(number) for number in range(1, len(kinds) + 1)]
    chosen = click.prompt(
        "Kind of model", type=click.Choice(numbers), default="1", show_choices=False
    )
    return kinds[int(chosen) - 1]


def ask_claude(
    kind: str, *, secret: str | None, address: str | None, model: str | None
) -> dict[str, Any]:
    field = "token" if kind == "claude-token" else "key"
    if secret is None:
        secret = _ask_secret("Token" if field == "token" else "API key")
    if model is None and is_terminal():
        model = click.prompt("Model", default=CLAUDE_MODEL)
    table = {"engine": "claude", field: secret}
    if address and address.rstrip("/") != CLAUDE_ADDRESS:
        table["address"] = address
    # The default is left out, so that an update of Backburner can change it.
    if model and model != CLAUDE_MODEL:
        table["model"] = model
    return table


def ask_openai(*, secret: str | None, address: str | None, model: str | None) -> dict[str, Any]:
    if address is None:
        _require_terminal("--address")
        address = click.prompt("Address", default=LOCAL_ADDRESS, value_proc=_parse_address)
    if secret is None and is_terminal() and not is_near(address):
        secret = _ask_secret("API key (empty for none)", may_be_empty=True)
    if model is None:
        if not is_terminal():
            names = " or ".join(_list_models(address, secret)[:MAX_MODELS_SHOWN])
            _require_terminal("--model", f": {names}" if names else "")
        model = _ask_model(address, secret)
    table = {"engine": "openai", "address": address, "model": model}
    return {**table, "key": secret} if secret else table


def read_secret(file: str) -> str:
    """Read a secret from a file, or from stdin for `-`; arguments are visible to other users."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        return clean_secret(text)
    except OSError as error:
        raise click.UsageError(f"Cannot read {file}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"{file} is not UTF-8 text.") from None
    except ValueError:
        raise click.UsageError(f"{file} must contain a key or token and nothing else.") from None


def _ask_secret(label: str, *, may_be_empty: bool = False) -> str | None:
    _require_terminal("--key-file")
    text = click.prompt(label, hide_input=True, default="", show_default=False)
    if not text and not may_be_empty:
        click.echo("Nothing was entered.")
        return _ask_secret(label)
    try:
        return clean_secret(text) if text else None
    except ValueError:
        click.echo("Not a key or token: it must not contain spaces.")
        return _ask_secret(label, may_be_empty=may_be_empty)


def _ask_model(address: str, secret: str | None) -> str:
    try:
        models = asyncio.run(list_models(address, secret))
    except EngineFailed as error:
        click.echo(f"Cannot list the models of this server. {error}")
        models = ()
    for number, name in enumerate(models, 1):
        click.echo(f"  {number}  {name}")
    choice: str = click.prompt("Model", default="1" if models else None)
    is_number = choice.isdecimal() and 1 <= int(choice) <= len(models)
    return models[int(choice) - 1] if is_number else choice


def _parse_address(text: str) -> str:
    try:
        return clean_address(text)
    except ValueError:
        raise click.BadParameter("use a URL such as https://host or http://host:1234") from None


def find_unlisted(address: str, secret: str | None, model: str) -> str:
    """Say so if a server does not list a model; some answer to any name with the one they have."""
    names = _list_models(address, secret)
    if not names or model in names:
        return ""
    return f"The server does not list {model}. It lists: {', '.join(names[:MAX_MODELS_SHOWN])}."


def _list_models(address: str, secret: str | None) -> tuple[str, ...]:
    """List the models of a server; none if it cannot tell them."""
    try:
        return asyncio.run(list_models(address, secret))
    except (EngineFailed, ValueError):
        return ()


def _require_terminal(option: str, choices: str = "") -> None:
    if not is_terminal():
        raise click.UsageError(f"Without a terminal, {option} is required{choices}.")
