"""The questions of `backburner setup`, for whatever its options leave open."""

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
    "claude-token": "Claude, with the token of a subscription (`claude setup-token` makes one)",
    "openai": "a model on this machine, or any server that speaks OpenAI's protocol",
    "demo": "just the demo, without any model",
}
LOCAL_ADDRESS = "http://127.0.0.1:11434/v1"


def is_terminal() -> bool:
    return sys.stdin.isatty()


def ask_kind() -> str:
    _need_terminal("--kind")
    kinds = list(KINDS)
    for number, kind in enumerate(kinds, 1):
        click.echo(f"  {number}  {KINDS[kind]}")
    numbers = [str(number) for number in range(1, len(kinds) + 1)]
    chosen = click.prompt("Which one", type=click.Choice(numbers), default="1", show_choices=False)
    return kinds[int(chosen) - 1]


def ask_claude(
    kind: str, *, secret: str | None, address: str | None, model: str | None
) -> dict[str, Any]:
    """Ask for what a Claude profile needs."""
    what = "token" if kind == "claude-token" else "key"
    if secret is None:
        secret = _ask_secret("Token" if what == "token" else "API key")
    if model is None and is_terminal():
        model = click.prompt("Model", default=CLAUDE_MODEL)
    table = {"engine": "claude", what: secret}
    if address and address.rstrip("/") != CLAUDE_ADDRESS:
        table["address"] = address
    # What is left out changes with the program.
    if model and model != CLAUDE_MODEL:
        table["model"] = model
    return table


def ask_openai(*, secret: str | None, address: str | None, model: str | None) -> dict[str, Any]:
    """Ask for what any other server needs."""
    if address is None:
        _need_terminal("--address")
        address = click.prompt("Address", default=LOCAL_ADDRESS, value_proc=_address)
    if secret is None and is_terminal() and not is_near(address):
        secret = _ask_secret("API key, or nothing", may_be_empty=True)
    if model is None:
        _need_terminal("--model")
        model = _ask_model(address, secret)
    table = {"engine": "openai", "address": address, "model": model}
    return {**table, "key": secret} if secret else table


def read_secret(file: str) -> str:
    """Read a secret from a file, or from what is sent for `-`; an argument could be seen by all."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        return clean_secret(text)
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"{file} is not UTF-8 text.") from None
    except ValueError:
        raise click.UsageError(f"{file} does not hold a key or token alone.") from None


def _ask_secret(what: str, *, may_be_empty: bool = False) -> str | None:
    _need_terminal("--key-file")
    default = "" if may_be_empty else None
    text = click.prompt(what, hide_input=True, default=default, show_default=False)
    try:
        return clean_secret(text) if text else None
    except ValueError:
        click.echo("That is not a key or token: it is one word, without blanks.")
        return _ask_secret(what, may_be_empty=may_be_empty)


def _ask_model(address: str, secret: str | None) -> str:
    try:
        offered = asyncio.run(list_models(address, secret))
    except EngineFailed as error:
        click.echo(f"The models there cannot be listed. {error}")
        offered = ()
    for number, name in enumerate(offered, 1):
        click.echo(f"  {number}  {name}")
    said: str = click.prompt("Model", default="1" if offered else None)
    is_number = said.isdecimal() and 1 <= int(said) <= len(offered)
    return offered[int(said) - 1] if is_number else said


def _address(text: str) -> str:
    try:
        return clean_address(text)
    except ValueError:
        raise click.BadParameter("it looks like https://host or http://host:1234") from None


def _need_terminal(option: str) -> None:
    if not is_terminal():
        raise click.UsageError(f"There is no terminal to ask on: {option} is needed.")
