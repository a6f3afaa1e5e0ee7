"""The prompts of `backburner setup`, for everything that its options leave open."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from backburner.app.models.entries import LOCAL_ADDRESS, read, to_table
from backburner.app.models.trial import MAX_MODELS_SHOWN, list_offered
from backburner.core.errors import BadSetting, EngineFailed
from backburner.ports import MODEL_KINDS, ModelEntry, ModelKind
from backburner.settings import CLAUDE_MODEL, clean_address, clean_secret, is_near


def is_terminal() -> bool:
    return sys.stdin.isatty()


def ask_kind() -> ModelKind:
    _require_terminal("--kind")
    kinds = list(MODEL_KINDS)
    for number, kind in enumerate(kinds, 1):
        click.echo(f"  {number}  {MODEL_KINDS[kind]}")
    numbers = [str(number) for number in range(1, len(kinds) + 1)]
    chosen = click.prompt(
        "Kind of model", type=click.Choice(numbers), default="1", show_choices=False
    )
    return kinds[int(chosen) - 1]


def ask_entry(
    kind: ModelKind, *, secret: str | None, address: str | None, model: str | None
) -> ModelEntry:
    if kind is ModelKind.DEMO:
        return ModelEntry(kind=kind)
    if kind is ModelKind.OPENAI:
        return _ask_openai(secret=secret, address=address, model=model)
    if secret is None:
        secret = _ask_secret("Token" if kind is ModelKind.CLAUDE_TOKEN else "API key")
    if model is None and is_terminal():
        model = click.prompt("Model", default=CLAUDE_MODEL)
    return ModelEntry(kind=kind, model=model or "", address=address or "", secret=secret)


def _ask_openai(*, secret: str | None, address: str | None, model: str | None) -> ModelEntry:
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
    return ModelEntry(kind=ModelKind.OPENAI, model=model, address=address, secret=secret)


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
        models = _ask_server(address, secret)
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


def _list_models(address: str, secret: str | None) -> Sequence[str]:
    """List the models of a server; none if it cannot tell them."""
    try:
        return _ask_server(address, secret)
    except (EngineFailed, BadSetting):
        return ()


def _ask_server(address: str, secret: str | None) -> Sequence[str]:
    entry = ModelEntry(kind=ModelKind.OPENAI, model="any", address=address, secret=secret)
    return asyncio.run(list_offered(read("local", to_table(entry))))


def _require_terminal(option: str, choices: str = "") -> None:
    if not is_terminal():
        raise click.UsageError(f"Without a terminal, {option} is required{choices}.")
