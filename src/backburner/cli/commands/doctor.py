"""`backburner doctor`: check the installation, and print the exact fix for each problem."""

import asyncio
from collections.abc import Iterator, Sequence

import click

from backburner.app import doctor as checks
from backburner.cli.connection_checks import check_connections
from backburner.cli.findings import Finding, Level, all_ok, as_lines
from backburner.cli.findings import as_json as findings_as_json
from backburner.cli.machine_checks import (
    check_data_folder,
    check_files,
    check_folders,
    check_memory,
    check_python,
    check_server,
    check_sign_ins,
    check_vault,
)
from backburner.cli.model_checks import check_models
from backburner.cli.output import print_line
from backburner.cli.server_options import json_option
from backburner.cli.setting_options import file_options
from backburner.core.errors import BackburnerError
from backburner.log import Redactor
from backburner.settings import Settings, load


@click.command("doctor", epilog="Exit code: 0 if everything configured works, else 1.")
@click.option("--offline", is_flag=True, help="Do not contact any model.")
@json_option
@file_options
def doctor(*, offline: bool, as_json: bool, **options: str | None) -> int:
    """Check this installation and suggest fixes."""
    findings = [check_python()]
    redactor = Redactor()
    try:
        settings = load(**options)
    except BackburnerError as error:
        findings += [Finding("settings", error.message, Level.PROBLEM, error.hint)]
    else:
        redactor = Redactor(settings.secrets())
        findings += check_installation(settings, offline=offline)
    for line in [findings_as_json(findings)] if as_json else as_lines(findings):
        # The texts of some findings come from libraries and servers, and may quote a secret.
        print_line(redactor.clean_text(line))
    return 0 if all_ok(findings) else 1


def check_installation(settings: Settings, *, offline: bool) -> Iterator[Finding]:
    yield check_data_folder(settings.data)
    yield from check_files(settings)
    yield from check_folders(settings)
    yield from check_database(settings)
    yield from check_vault(settings)
    yield from check_connections(settings)
    yield from asyncio.run(check_models(settings, offline=offline))
    if settings.commands == "confined":
        missing = checks.confinement_missing()
        yield from check_confinement(missing, checks.confinement_gaps())
        if missing is None:
            yield check_process_wall(has_namespace=checks.gives_process_namespace())
            yield check_limit_wall(has_group=bool(checks.control_groups()))
            yield from check_sign_ins(checks.describe_sign_ins(settings))
    yield check_memory(settings, checks.free_memory())
    if finding := check_server(settings):
        yield finding


def check_database(settings: Settings) -> Iterator[Finding]:
    kind = "SQLite" if settings.database_url is None else "as configured"
    try:
        yield Finding("database", f"{kind}, {checks.describe_database(settings)}.")
        later = checks.find_later_change(settings)
    except BackburnerError as error:
        yield Finding("database", error.message, Level.PROBLEM, error.hint)
        return
    if later is not None:
        message = f"the database was last changed at {later:%Y-%m-%d %H:%M} UTC, later than now."
        hint = "If the clock is right now, the next start corrects the times of recurring work."
        yield Finding("clock", message, Level.NOTE, hint)


def check_confinement(missing: str | None, gaps: Sequence[str]) -> Iterator[Finding]:
    """Report why commands of agents cannot be confined, or each gap of an older kernel."""
    if missing is not None:
        hint = "Set commands to off, or to unconfined if you trust the agents."
        yield Finding("confinement", missing, Level.PROBLEM, hint)
    elif gaps:
        yield from (Finding("confinement", gap, Level.NOTE) for gap in gaps)
    else:
        yield Finding("confinement", "commands of agents are confined to the workspace.")


def check_process_wall(*, has_namespace: bool) -> Finding:
    """Report how the processes of others are hidden from the commands of a team."""
    if has_namespace:
        message = "with more than one account, a command sees only its own, in a PID namespace."
        return Finding("processes", message)
    message = (
        "with more than one account, a command reads nothing about others, nor about its own: this"
        " system gives it no PID namespace, so most of /proc is hidden. It can learn which process"
        " ids are in use."
    )
    return Finding("processes", message, Level.NOTE)


def check_limit_wall(*, has_group: bool) -> Finding:
    """Report how the memory and the processes of a command are bounded."""
    if has_group:
        return Finding("limits", "a control group bounds the memory and processes of a command.")
    message = (
        "the memory and processes of a command are measured four times a second, because a server"
        " started from here has no control group for them."
    )
    hint = "In a systemd unit: Delegate=memory pids and DelegateSubgroup=server."
    return Finding("limits", message, Level.NOTE, hint)
