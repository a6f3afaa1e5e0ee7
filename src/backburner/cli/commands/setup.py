"""`backburner setup`: configure a model, test it, and store it."""

import asyncio
from pathlib import Path
from typing import Any

import click

from backburner.app.folder import prepare_data_folder
from backburner.app.local_zone import find_local_zone
from backburner.app.models.entries import PROFILE_NAMES, read, to_table
from backburner.app.models.trial import run_test
from backburner.cli.client import NoServer, Server
from backburner.cli.command_name import name_commands
from backburner.cli.output import print_line
from backburner.cli.profile_summary import summarize
from backburner.cli.server_options import read_client_file
from backburner.cli.setting_options import setting
from backburner.cli.setup_prompts import ask_entry, ask_kind, is_terminal, read_secret
from backburner.core.errors import BackburnerError, BadSetting
from backburner.data_folder import find_data_folder
from backburner.ports import MODEL_KINDS, ModelKind, Trouble
from backburner.settings import (
    BACKGROUND_ROLE,
    CHAT_ROLE,
    MODELS_FILE,
    Profile,
    load,
    lock_models_file,
    read_models_file,
    read_profiles,
    replace_profile,
    write_models_file,
)

#: Exit codes of a failed test.
CODES = {
    Trouble.OTHER: 1,
    Trouble.REFUSED: 3,
    Trouble.UNREACHABLE: 4,
    Trouble.MODEL: 5,
    Trouble.LIMIT: 6,
}


@click.command(
    "setup",
    epilog="Exit codes: 0 stored. If the test failed: 3 key or token refused, 4 server"
    " unreachable, 5 no such model, 6 limit reached, 1 other.",
)
@click.option(
    "--kind", type=click.Choice([kind.value for kind in MODEL_KINDS]), help="Kind of model."
)
@click.option(
    *("--key-file", "--token-file", "secret_file"),
    metavar="FILE",
    help="File with the key or token; - reads standard input.",
)
@click.option("--address", metavar="URL", help="Address of the API.")
@click.option("--model", metavar="NAME", help="Name of the model.")
@click.option("--background", is_flag=True, help="Use it for background work only.")
@click.option("--test/--no-test", default=True, help="Test the model before storing it.")
@click.option("--keep", is_flag=True, help="Store it even if the test fails.")
@setting("data", "FOLDER")
@setting("config", "FILE")
def setup(
    kind: str | None,
    secret_file: str | None,
    address: str | None,
    model: str | None,
    *,
    background: bool,
    test: bool,
    keep: bool,
    **files: str | None,
) -> int:
    """Set up a model.

    It replaces the model that was set up before, and asks for options that are missing.
    """
    folder = find_data_folder(**files)
    stored = read_stored(folder)
    chosen = ModelKind(kind) if kind else ask_kind()
    secret = read_secret(secret_file) if secret_file else None
    table = to_table(ask_entry(chosen, secret=secret, address=address, model=model))
    _, name = replace_profile(stored, PROFILE_NAMES[chosen], table, background=background)
    profile = read(name, table)
    if test and (code := try_model(profile, keep=keep, is_listed=model is None)):
        print_line("Nothing was stored.")
        return code
    prepare_data_folder(folder)
    with lock_models_file(folder):
        # The page may have stored another one meanwhile.
        stored = find_stored(folder)
        content, name = replace_profile(stored, PROFILE_NAMES[chosen], table, background=background)
        path = write_models_file(folder, content)
    print_line(f"Stored in {path}, which only you can read.")
    print_model_in_use(read(name, table), files, background=background)
    return 0


def read_stored(folder: Path) -> dict[str, Any]:
    """Read and print the stored models; an invalid file is reported and will be replaced."""
    try:
        stored = read_models_file(folder)
        profiles = read_profiles(stored.get("profiles", {}))
    except (BadSetting, ValueError) as error:
        path = folder / MODELS_FILE
        print_line(f"{path} is invalid and will be replaced. {error}".strip())
        return {}
    for role, user in ((CHAT_ROLE, "Chats"), (BACKGROUND_ROLE, "Background work")):
        if (name := stored.get(role)) in profiles:
            print_line(f"{user} now: {name}, {summarize(profiles[name])}.")
    return stored


def find_stored(folder: Path) -> dict[str, Any]:
    """Read the stored models; none if the file is invalid."""
    try:
        stored = read_models_file(folder)
        read_profiles(stored.get("profiles", {}))
    except (BadSetting, ValueError):
        return {}
    return stored


def try_model(profile: Profile, *, keep: bool, is_listed: bool) -> int:
    """Test a model; return the exit code if it failed and is not to be stored, else 0."""
    if profile.engine != "demo":
        print_line(f"Testing {profile.model} ...")
    test = asyncio.run(run_test(profile, is_listed=is_listed))
    print_line(f"{test.trial.message} {test.trial.hint}".strip())
    if test.note:
        print_line(test.note)
    if test.trial.trouble is None or keep:
        return 0
    if is_terminal() and click.confirm("Store it anyway?", default=False):
        return 0
    return CODES[test.trial.trouble]


def tell_server(user: str, folder: Path) -> str:
    """Have a running server read its models again; return whether it uses them now."""
    try:
        stored = read_client_file(str(folder))
        server = Server(str(stored["address"]), str(stored["token"]))
        server.post_once("/api/models/reload")
        server.put("/api/me", {"found_zone": find_local_zone()})
    except NoServer:
        return name_commands(
            f"{user} will use it when Backburner starts. If it is running, run `backburner models"
            " reload`."
        )
    except BackburnerError as error:
        return f"{user} will use it when Backburner has restarted. {error}"
    return f"{user} use it now."


def print_model_in_use(profile: Profile, files: dict[str, str | None], *, background: bool) -> None:
    """Print whether it is used: the settings file and the environment override it."""
    try:
        settings = load(**files)
    except BadSetting as error:
        print_line(f"Backburner cannot start with the current settings: {error}")
        return
    used = settings.routes.background if background else settings.routes.chat
    is_for_both = settings.routes.background in (None, settings.routes.chat)
    chats = "Chats and background work" if is_for_both else "Chats"
    user = "Background work" if background else chats
    if used == profile.name and settings.profiles[used] == profile:
        print_line(tell_server(user, find_data_folder(**files)))
    else:
        other = f"{used}, {summarize(settings.profiles[used])}" if used else "the model of chats"
        print_line(f"{user} will use {other}: the settings file or the environment overrides it.")
