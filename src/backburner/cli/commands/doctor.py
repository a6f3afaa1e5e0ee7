"""`backburner doctor`: what works on this machine, and exactly what to do about what does not."""

import asyncio
from collections.abc import Callable, Iterator

import click

from backburner.app.doctor import further_checks, look_at_database, measure_memory
from backburner.cli.findings import Finding, Mark, as_json, as_lines, is_well
from backburner.cli.machine_checks import (
    look_at_data,
    look_at_files,
    look_at_memory,
    look_at_port,
    look_at_python,
)
from backburner.cli.model_checks import look_at_models
from backburner.cli.server_main import say, setting
from backburner.core.errors import BackburnerError
from backburner.log import Redactor
from backburner.settings import Settings, load


@click.command("doctor", epilog="It ends with 0 if all that is set up works, and else with 1.")
@click.option("--offline", is_flag=True, help="Ask no model.")
@click.option("--json", "in_json", is_flag=True, help="For scripts.")
@setting("data", "FOLDER")
@setting("config", "FILE")
@setting("database_url", "URL")
def command(*, offline: bool, in_json: bool, **options: str | None) -> int:
    """See what works here, and what to do about what does not."""
    findings = [look_at_python()]
    redactor = Redactor()
    try:
        settings = load(**options)
    except BackburnerError as error:
        findings += [Finding("settings", error.message, Mark.BROKEN, error.hint)]
    else:
        redactor.add(settings.secrets())
        findings += examine(settings, offline=offline)
    for line in [as_json(findings)] if in_json else as_lines(findings):
        # Whatever a part says of itself, no secret gets out.
        say(redactor.clean_text(line))
    return 0 if is_well(findings) else 1


def examine(settings: Settings, *, offline: bool) -> Iterator[Finding]:
    yield look_at_data(settings.data)
    yield from look_at_files(settings)
    yield look_at_store(settings)
    yield from asyncio.run(look_at_models(settings, offline=offline))
    for what, missing in further_checks(settings).items():
        yield look_at_part(what, missing)
    yield look_at_memory(settings, measure_memory())
    if finding := look_at_port(settings):
        yield finding


def look_at_store(settings: Settings) -> Finding:
    kind = "SQLite" if settings.database_url is None else "the one that is set"
    try:
        return Finding("database", f"{kind}, {look_at_database(settings)}.")
    except BackburnerError as error:
        return Finding("database", error.message, Mark.BROKEN, error.hint)


def look_at_part(what: str, missing: Callable[[], str | None]) -> Finding:
    words = missing()
    return Finding(what, words, Mark.BROKEN) if words else Finding(what, "all is there.")
