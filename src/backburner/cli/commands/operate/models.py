"""`backburner models`: the models that conversations can use."""

from typing import Any
from urllib.parse import quote

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.commands.operate import model_setup
from backburner.cli.commands.operate.model_setup import read_key
from backburner.cli.list_group import LIST, ListGroup
from backburner.cli.output import print_items, print_result
from backburner.cli.server_options import json_option, with_server


@click.group("models", cls=ListGroup)
def models() -> None:
    """Manage the models of conversations. Without a command, list them.

    The command `backburner setup` sets up a model without a server. MODEL is the name of its
    profile.
    """


@models.command(LIST)
@json_option
@with_server
def list_models(server: Server, *, as_json: bool) -> None:
    """List models, and what uses each by default."""
    _print(list(server.items("/api/models")), as_json=as_json)


@models.command("use")
@click.argument("conversation")
@click.argument("model", required=False)
@click.option("--default", "is_default", is_flag=True, help="Use the default model again.")
@json_option
@with_server
def use(
    server: Server, *, conversation: str, model: str | None, is_default: bool, as_json: bool
) -> None:
    """Change the model of a conversation or task, from its next run on.

    CONVERSATION is a title, an id, or the start of an id. The new model knows the messages of the
    conversation. For the reply to one message, use `say --model`.
    """
    if is_default == (model is not None):
        raise click.UsageError("Pass either MODEL or --default.")
    path = f"/api/conversations/{id_prefix.find_conversation(server, conversation)}"
    changed = server.patch(path, {"profile": model})
    text = f"{changed['title'] or 'The conversation'} uses {changed['profile']} from now on."
    print_result(changed, text, as_json=as_json)


@models.command("key")
@click.argument("model")
@click.option("--file", metavar="FILE", help="Read the key from FILE instead of asking for it.")
@click.option("--remove", is_flag=True, help="Use the key of the settings again.")
@json_option
@with_server
def key(server: Server, *, model: str, file: str | None, remove: bool, as_json: bool) -> None:
    """Store your own key for a model; only your work uses it.

    It is asked for, and not shown. Operators allow it with the setting own_model_keys.
    """
    if remove and file:
        raise click.UsageError("Pass either --file or --remove.")
    if remove:
        server.delete(f"/api/models/key?profile={quote(model, safe='')}")
        print_result({"own_key": False}, f"{model} uses the key of the settings.", as_json=as_json)
        return
    server.put("/api/models/key", {"profile": model, "key": read_key(model, file)})
    print_result({"own_key": True}, f"Your work with {model} uses your own key.", as_json=as_json)


@models.command("reload")
@json_option
@with_server
def reload(server: Server, *, as_json: bool) -> None:
    """Read the models from the settings again (operators only).

    All processes use them at once; runs in progress keep their model. If the settings are invalid,
    nothing changes.
    """
    _print(server.post_once("/api/models/reload")["items"], as_json=as_json)


for command in model_setup.COMMANDS:
    models.add_command(command)


def _print(items: list[Any], *, as_json: bool) -> None:
    rows = [{"MODEL": item["profile"], "USED BY": _uses(item)} for item in items]
    print_items(items, rows, empty="No models.", as_json=as_json)


def _uses(model: Any) -> str:
    uses = (
        ("chats", model["chats"]),
        ("background work", model["background"]),
        ("your own key", model.get("own_key")),
    )
    return ", ".join(name for name, is_used in uses if is_used)
