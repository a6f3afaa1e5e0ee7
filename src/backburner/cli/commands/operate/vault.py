"""`backburner vault`: whether the sealed secrets can be opened, and the rotation of their key."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click

from backburner.app import backup as backups
from backburner.app import vault as offline
from backburner.cli.client import Server
from backburner.cli.command_name import name_commands
from backburner.cli.confirmation import confirm, yes_option
from backburner.cli.output import print_fields, print_json, print_line, print_result
from backburner.cli.server_options import find_server, json_option
from backburner.cli.setting_options import file_options
from backburner.core.errors import NotFound
from backburner.settings import Settings, load

token_option = click.option(
    "--token-file", metavar="FILE", help="File with an operator's token, if the server is running."
)
url_option = click.option("--url", metavar="URL", help="Address of the server, if it is running.")


@click.group("vault")
def vault() -> None:
    """Manage the keys that seal secrets in the database."""


@vault.command("status", epilog="Exit code: 0 if all secrets can be opened, else 1.")
@json_option
@token_option
@url_option
@file_options
def status(*, as_json: bool, token_file: str | None, url: str | None, **options: str | None) -> int:
    """Show the master keys, and whether they open all secrets."""
    settings = load(**options)
    server = _find_server(settings, url, token_file)
    found = server.get("/api/vault") if server else _read_status(settings)
    if as_json:
        print_json(found)
    else:
        _print_status(found)
    return 1 if found["locked"] or found["problem"] else 0


@vault.command("rotate")
@click.option("--keep-old", is_flag=True, help="Keep the former key in the file, for backups.")
@yes_option
@json_option
@token_option
@url_option
@file_options
def rotate(
    *,
    keep_old: bool,
    is_sure: bool,
    as_json: bool,
    token_file: str | None,
    url: str | None,
    **options: str | None,
) -> None:
    """Wrap all keys by a new master key.

    It works while the server is running, and can be repeated if it is interrupted. Backups made
    before need the former key. With several machines, the first call makes the new key, and the
    second one uses it once all of them have it.
    """
    settings = load(**options)
    if not keep_old:
        question = "Delete the former master key afterwards? Backups made before need it."
        confirm(question, is_sure=is_sure, hint="Add --yes, or --keep-old to keep it.")
    if server := _find_server(settings, url, token_file):
        rotated = server.post_once("/api/vault/rotate", {"keep_old": keep_old})
    else:
        rotated = asdict(offline.rotate(settings, keep_old=keep_old))
    print_result(rotated, _describe_rotation(rotated), as_json=as_json)


@vault.command("reset")
@yes_option
@json_option
@token_option
@url_option
@file_options
def reset(
    *,
    is_sure: bool,
    as_json: bool,
    token_file: str | None,
    url: str | None,
    **options: str | None,
) -> None:
    """Delete the secrets whose master key is lost.

    Their users have to enter them again.
    """
    settings = load(**options)
    confirm("Delete all secrets whose master key is not on this machine?", is_sure=is_sure)
    if server := _find_server(settings, url, token_file):
        count = server.post_once("/api/vault/reset")["forgotten"]
    else:
        count = offline.forget_locked(settings)
    text = f"Deleted: the secrets under {count} keys." if count else "Nothing is locked."
    print_result({"forgotten": count}, text, as_json=as_json)


def _find_server(settings: Settings, url: str | None, token_file: str | None) -> Server | None:
    """Return the server that has the database open, if nobody else can open it meanwhile."""
    if backups.is_sqlite(settings) and backups.is_in_use(settings):
        return find_server(url, token_file, str(settings.data))
    return None


def _read_status(settings: Settings) -> dict[str, Any]:
    found = offline.read_status(settings)
    if found is None:
        raise NotFound(
            "There is no database with the tables of this version.",
            hint="Name its folder with --data, or create it: `backburner db migrate`.",
        )
    return asdict(found)


def _print_status(found: Mapping[str, Any]) -> None:
    keys = ", ".join(found["master_keys"])
    print_fields(
        {
            "Master keys": f"{found['source']} ({keys or 'none yet'})",
            "In use": found["current"] or "none: nothing is sealed yet",
            "Users with secrets": found["users"],
        }
    )
    if found["problem"]:
        print_line(name_commands(f"{found['problem']} {found['hint']}"))
    for line in offline.describe_locked(found["locked"]):
        print_line(name_commands(line))


def _describe_rotation(rotated: Mapping[str, Any]) -> str:
    new, source = rotated["new"], rotated["status"]["source"]
    if rotated["waits_for_hosts"]:
        return (
            f"The new master key {new} is in {source}, and is not used yet. Copy the file to all"
            " other machines that use this database, then rotate again."
        )
    text = f"The master key {new} is in use."
    if rotated["removed"]:
        text += f" Deleted from {source}: {', '.join(rotated['removed'])}."
        text += " Backups made before need it."
    if rotated["status"]["locked"]:
        text += " Some secrets are locked, and were left as they are: `backburner vault status`."
    return text
