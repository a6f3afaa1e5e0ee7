"""The real program with an agent that does what its work says, instead of a model.

`python -m support.faults.program --traces FILE --data FOLDER [--database-url URL] ...` works on
a PostgreSQL; with `--serve`, it serves as well, as `backburner up` does, and so on a SQLite file.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from backburner import log
from backburner.app.machines import Machines
from backburner.app.program import run
from backburner.core.ids import UserId
from backburner.gateway.network import CheckedNetwork
from backburner.ports import Offer
from backburner.process.shell import ConfinedShell
from backburner.settings import Settings, load
from backburner.tools.workspace import CommandTerms, workspace_offers
from support.doubles.engine import ScriptedEngine
from support.faults import script
from support.faults.halting import (
    Halt,
    HaltingChannel,
    HaltingEngine,
    HaltingStore,
    HaltingTools,
    Point,
    say,
)
from support.faults.lasting import LastingChannel, LastingTools
from support.faults.traces import Traces

ENGINE, CHANNEL = "scripted", "outside"
#: Settings that can be given, and what they are here unless they are.
SETTINGS = {
    "data": None,
    "database_url": None,
    "database_direct_url": None,
    "port": "0",
    "lease": "2s",
    "heartbeat": "500ms",
    "drain": "2s",
    "concurrency": "8",
    "per_user_concurrency": "8",
    "batch": "8",
    "poll_interval": "1s",
    "log_level": "info",
}


def machines(settings: Settings, traces: Traces, halt: Halt) -> Machines:
    def workspace(user: UserId, terms: CommandTerms) -> Sequence[Offer]:
        folder, kept = settings.workspaces / user, settings.kept_changes / user
        real = workspace_offers(folder, kept, ConfinedShell(), CheckedNetwork(), terms)
        return [*LastingTools(traces)(user, terms), *real]

    agent = ScriptedEngine(otherwise=script.read)
    return Machines(
        engines={ENGINE: HaltingEngine(agent, halt)},
        default_profile=ENGINE,
        workspace=HaltingTools(workspace, halt),
        channels={CHANNEL: HaltingChannel(LastingChannel(traces), halt)},
        store=lambda store: HaltingStore(store, halt),
    )


def main() -> None:
    options = argparse.ArgumentParser(prog="support.faults.program")
    options.add_argument("--traces", type=Path, required=True)
    options.add_argument("--halt-at", type=Point, default=None)
    options.add_argument("--serve", action="store_true")
    for name, usual in SETTINGS.items():
        options.add_argument(f"--{name.replace('_', '-')}", default=usual)
    given = vars(options.parse_args())
    settings = load(**{name: given[name] for name in SETTINGS})
    log.set_up(level=settings.log_level, style=settings.log_format, secrets=settings.secrets())
    run(
        settings,
        announce=lambda name: say(f"ready as {name}"),
        serves=given["serve"],
        machines=machines(settings, Traces(given["traces"]), Halt(given["halt_at"])),
    )
    say("stopped")


if __name__ == "__main__":
    main()
