"""`backburner setup`: a model set up in a minute, tried, and kept."""

import asyncio
from pathlib import Path
from typing import Any

import click

from backburner.app.doctor import try_profile
from backburner.app.folder import prepare_data_folder
from backburner.cli.models import describe
from backburner.cli.server_main import say, setting
from backburner.cli.setup_prompts import (
    KINDS,
    ask_claude,
    ask_kind,
    ask_openai,
    is_terminal,
    read_secret,
)
from backburner.core.errors import BadSetting
from backburner.ports import Trouble
from backburner.settings import (
    MODELS_NAME,
    Profile,
    find_data_folder,
    keep_models,
    load,
    put_in,
    read_models,
    read_profile,
    read_profiles,
)

#: What the command ends with when a model was tried in vain.
CODES = {
    Trouble.OTHER: 1,
    Trouble.REFUSED: 3,
    Trouble.UNREACHABLE: 4,
    Trouble.MODEL: 5,
    Trouble.LIMIT: 6,
}


@click.command(
    "setup",
    epilog="It ends with 0 if the model is kept, and if the try failed with 3 (key or token"
    " refused), 4 (cannot be reached), 5 (no such model), 6 (limit reached) or 1.",
)
@click.option("--kind", type=click.Choice(list(KINDS)), help="What kind of model it is.")
@click.option(
    *("--key-file", "--token-file", "secret_file"),
    metavar="FILE",
    help="A file with the key or token, - for what is sent; on a command line all could see it.",
)
@click.option("--address", metavar="URL", help="Where the API is.")
@click.option("--model", metavar="NAME", help="The name of the model.")
@click.option("--background", is_flag=True, help="For background work only, beside what chats use.")
@click.option("--test/--no-test", default=True, help="Whether the model is tried.")
@click.option("--keep", is_flag=True, help="Keep it even if the try fails.")
@setting("data", "FOLDER")
@setting("config", "FILE")
def command(
    kind: str | None,
    secret_file: str | None,
    address: str | None,
    model: str | None,
    *,
    background: bool,
    test: bool,
    keep: bool,
    **where: str | None,
) -> int:
    """Set up a model, or replace the one that is there."""
    folder = find_data_folder(**where)
    kept = show_kept(folder)
    kind = kind or ask_kind()
    secret = read_secret(secret_file) if secret_file else None
    table: dict[str, Any] = {"engine": "demo"}
    if kind == "openai":
        table = ask_openai(secret=secret, address=address, model=model)
    elif kind != "demo":
        table = ask_claude(kind, secret=secret, address=address, model=model)
    name = {"openai": "local", "demo": "demo"}.get(kind, "claude")
    content, name = put_in(kept, name, table, background=background)
    profile = check(name, table)
    if test and (code := fails(profile, keep=keep)):
        say("Nothing was kept.")
        return code
    prepare_data_folder(folder)
    say(f"Kept in {keep_models(folder, content)}, which only you can read.")
    say_what_is_used(profile, where, background=background)
    return 0


def show_kept(folder: Path) -> dict[str, Any]:
    """Tell what is there, and give it; what cannot be read is told too, and will be replaced."""
    try:
        kept = read_models(folder)
        profiles = read_profiles(kept.get("profiles", {}))
    except (BadSetting, ValueError) as error:
        say(f"{folder / MODELS_NAME} has a fault and will be replaced. {error}".strip())
        return {}
    for role, what in (("profile", "Chats"), ("background_profile", "Background work")):
        if (name := kept.get(role)) in profiles:
            say(f"{what} now: {name}, {describe(profiles[name])}.")
    return kept


def check(name: str, table: dict[str, Any]) -> Profile:
    try:
        return read_profile(name, table)
    except ValueError as error:
        raise BadSetting(f"The profile {error}.") from None


def fails(profile: Profile, *, keep: bool) -> int:
    """Try a model; give the code to end with if it failed and is not to be kept."""
    if profile.engine != "demo":
        say(f"Asking {profile.model} for one word ...")
    trial = asyncio.run(try_profile(profile))
    say(f"{trial.words} {trial.hint}".strip())
    if trial.trouble is None or keep:
        return 0
    if is_terminal() and click.confirm("Keep it anyway?", default=False):
        return 0
    return CODES[trial.trouble]


def say_what_is_used(profile: Profile, where: dict[str, str | None], *, background: bool) -> None:
    """Say what comes of it: stronger settings may say otherwise."""
    try:
        settings = load(**where)
    except BadSetting as error:
        say(f"Backburner will not start, though, before this is put right: {error}")
        return
    used = settings.routes.background if background else settings.routes.chat
    who = "Background work" if background else "Chats"
    if used == profile.name and settings.profiles[used] == profile:
        say(f"{who} will use it. A Backburner that is running takes it up at its next start.")
    else:
        is_what = f"{used}, {describe(settings.profiles[used])}" if used else "what chats use"
        say(f"{who} will use {is_what}: the settings file or the environment says so.")
