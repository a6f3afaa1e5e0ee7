"""Commands of `backburner models` that set up models on a running server (operators only)."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import click

from backburner.cli.client import Server
from backburner.cli.confirmation import confirm, yes_option
from backburner.cli.output import local_time, print_items, print_json, print_result, printable
from backburner.cli.server_options import json_option, with_server
from backburner.core.errors import BackburnerError, BadRequest

_PATH = "/api/operate/models"
#: As the API names them; the demo is built in.
KINDS = ("claude-key", "claude-token", "openai")
_STATES = {"works": "", "outage": "outage", "refused": "key refused"}

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class TestFailed(BackburnerError):
    """The test failed."""

    __test__ = False  # for pytest, which would collect it


def entry_options(command: Decorated) -> Decorated:
    """Add the options that describe a model."""
    for option in (
        click.option(
            "--key-file", metavar="FILE", help="File with the key or token; without it, the stored."
        ),
        click.option("--address", metavar="URL", help="Address of the API."),
        click.option("--name", metavar="NAME", help="Name of the model at its server."),
        click.option("--kind", type=click.Choice(KINDS), help="Kind of model."),
    ):
        command = option(command)
    return command


@click.command("setup")
@json_option
@with_server
def show_setup(server: Server, *, as_json: bool) -> None:
    """List models with address, key and state (operators only)."""
    found = server.get(_PATH)
    rows = [
        {
            "PROFILE": item["profile"],
            "KIND": item["kind"],
            "MODEL": item["model"],
            "ADDRESS": item["address"],
            "KEY": "yes" if item["has_key"] else "",
            "USED BY": _uses(item),
            "STATE": _state(item),
        }
        for item in found["items"]
    ]
    print_items(found["items"], rows, empty="No models.", as_json=as_json)
    if not as_json:
        for obstacle in ("obstacle", "chats_obstacle", "background_obstacle"):
            if found[obstacle]:
                click.echo(printable(found[obstacle]), err=True)


@click.command("test")
@click.argument("model", required=False)
@entry_options
@json_option
@with_server
def try_model(server: Server, *, model: str | None, as_json: bool, **entry: str | None) -> None:
    """Send a model one short request, and store nothing (operators only).

    MODEL is tested as it is, or with the options. Without MODEL, the options describe it.
    """
    result = server.post_once(f"{_PATH}/test", {"profile": model, "entry": _read_entry(entry)})
    if as_json:
        print_json(result)
    else:
        seconds = f" It took {result['latency_ms'] / 1000:.1f} s."
        note = f" {result['note']}" if result["note"] else ""
        if result["works"]:
            click.echo(printable(f"{result['message']}{seconds}{note}"))
    if not result["works"]:
        raise TestFailed(result["message"], hint=result["hint"])


@click.command("offered")
@click.argument("model", required=False)
@entry_options
@json_option
@with_server
def offered(server: Server, *, model: str | None, as_json: bool, **entry: str | None) -> None:
    """List the models that a server offers (operators only).

    It is the server of MODEL, or that of the options.
    """
    body = {"profile": model, "entry": _read_entry(entry)}
    found = server.post_once(f"{_PATH}/offered", body)
    if found["problem"]:
        raise TestFailed(found["problem"], hint=found["hint"])
    rows = [{"MODEL": name} for name in found["models"]]
    print_items(found["models"], rows, empty="No models.", as_json=as_json)


@click.command("save")
@click.argument("model")
@entry_options
@click.option("--chats", is_flag=True, help="Make it the model of chats.")
@click.option("--background", is_flag=True, help="Make it the model of background work.")
@json_option
@with_server
def save(
    server: Server,
    *,
    model: str,
    chats: bool,
    background: bool,
    as_json: bool,
    **entry: str | None,
) -> None:
    """Set up a model on a running server, or change one (operators only).

    It is not tested: use `backburner models test` before. Without --key-file, the stored key stays
    if the address does.
    """
    body = _read_entry(entry)
    if body is None:
        raise click.UsageError("Pass --kind.")
    chosen = {"chats": chats, "background": background}
    body["use_for"] = [role for role, is_chosen in chosen.items() if is_chosen]
    saved = server.put(f"{_PATH}/{quote(model, safe='')}", body)
    print_result(saved, f"{model} is set up, and can be used now.", as_json=as_json)


@click.command("default")
@click.argument("model", required=False)
@click.option("--background", is_flag=True, help="Choose the model of background work.")
@click.option("--as-chats", is_flag=True, help="Use the model of chats for background work.")
@json_option
@with_server
def choose_default(
    server: Server, *, model: str | None, background: bool, as_chats: bool, as_json: bool
) -> None:
    """Choose the model of chats or of background work (operators only)."""
    if as_chats == (model is not None):
        raise click.UsageError("Pass either MODEL or --as-chats.")
    is_background = background or as_chats
    chosen = server.patch(_PATH, {"background" if is_background else "chats": model})
    user = "Background work uses" if is_background else "Chats use"
    print_result(chosen, f"{user} {model or 'the model of chats'} now.", as_json=as_json)


@click.command("remove")
@click.argument("model")
@yes_option
@json_option
@with_server
def remove(server: Server, *, model: str, is_sure: bool, as_json: bool) -> None:
    """Remove a model and its key (operators only)."""
    confirm(f"Remove {printable(model)} and its key?", is_sure=is_sure)
    server.delete(f"{_PATH}/{quote(model, safe='')}")
    print_result({"removed": model}, f"Removed {model}.", as_json=as_json)


def read_key(model: str, file: str | None) -> str:
    """Read a key from a file, or ask for it: arguments are visible to other users."""
    if file is not None:
        try:
            return Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BadRequest(f"Cannot read {file}: {error}.") from None
    if not sys.stdin.isatty():
        raise BadRequest("A key is typed in a terminal.", hint="Run it in one, or use --file.")
    typed: str = click.prompt(f"Key for {printable(model)}", hide_input=True, err=True)
    return typed


def _read_entry(options: dict[str, str | None]) -> dict[str, Any] | None:
    kind, file = options["kind"], options["key_file"]
    if kind is None:
        if any(options.values()):
            raise click.UsageError("Pass --kind as well.")
        return None
    entry = {"kind": kind, "model": options["name"] or "", "address": options["address"] or ""}
    return {**entry, "key": None if file is None else read_key("", file)}


def _uses(item: Any) -> str:
    uses = {"chats": item["chats"], "background work": item["background"]}
    return ", ".join(name for name, is_used in uses.items() if is_used)


def _state(item: Any) -> str:
    if item["state"] == "works":
        return ""
    return f"{_STATES[item['state']]} since {local_time(item['since'])}: {item['trouble']}"


COMMANDS = (show_setup, try_model, offered, save, choose_default, remove)
