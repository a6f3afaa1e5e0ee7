"""What belongs to the one who lives here: connections, memories, tokens, and what may be spent."""

from datetime import timedelta
from typing import Any

from backburner.actions import memories
from backburner.actions.accounts import credentials, profile
from backburner.core.accounts import Scope
from backburner.core.allowance import AllowanceScope
from backburner.core.connections.connection import AuthKind, Ticks
from backburner.core.work.folders import Folder
from backburner.ports import WorkerReport
from support.doubles.tool_servers import changed, tool
from support.people.callers import local_caller
from support.showcase.world import MACHINE, NOW, Showcase, before_the_end

READS = Ticks(read_only=True)
TOOLS = {
    "mail": [
        tool("search_mail", "Finds mails by words, sender and date.", ticks=READS),
        tool("read_mail", "Gives a mail with its attachments.", ticks=READS),
        tool("send_mail", "Sends a mail from your address."),
        tool("delete_mail", "Deletes a mail for good.", ticks=Ticks(off=True)),
    ],
    "builds": [
        tool("list_runs", "Lists builds and what came of them.", ticks=READS),
        tool("restart_run", "Builds a commit again.", ticks=Ticks(repeatable=True)),
        changed(
            tool("read_log", "Reads the log of a build.", ticks=READS),
            "Reads the log of a build, and marks the build as seen by you.",
        ),
    ],
    "calendar": [tool("list_events", "Lists what is in your calendar.", ticks=READS)],
    "news": [tool("send_campaign", "Sends a newsletter to a list.")],
    "shop": [tool("place_order", "Orders an article, and pays for it.")],
}
#: How each is signed in to.
SIGN_INS: dict[str, dict[str, Any]] = {
    "mail": {"auth": AuthKind.OAUTH, "scopes": ("mail.read", "mail.send")},
    "builds": {
        "auth": AuthKind.OAUTH,
        "scopes": ("builds.read", "builds.write"),
        "refused_scopes": ("admin",),
        "expires_at": NOW + timedelta(days=19),
    },
    "calendar": {"auth": AuthKind.OAUTH, "scopes": ("events.read",)},
    "news": {"auth": AuthKind.HEADER, "headers": ("Authorization",)},
}
#: With the instructions in them that were accepted.
FOLDERS = {
    "/srv/nora/shop": {"AGENTS.md": "Run the tests first."},
    "/srv/nora/letters": dict[str, str](),
}
REMEMBERED = {
    "vet": "Biscuit goes to Dr Osei, mornings only.",
    "paper": "Bright Paper: net 30 days, never express.",
    "tone": "Letters are short and friendly, and end with thanks.",
    "builds": "A flaky test is worth a fix when it fails twice in a week.",
}


@before_the_end(days=29)
async def move_in(world: Showcase) -> None:
    limits = {AllowanceScope.DAY: "5.00 USD"}
    changes = profile.SettingsChanges(zone="Europe/Lisbon", limits=limits)
    await profile.change_settings(world.deps, world.me, changes)
    for name, tools in TOOLS.items():
        made = world.servers.add(world, name, tools, user=world.me, **SIGN_INS.get(name, {}))
        world.connections[name] = made.id
        world.servers[name].handler = lambda name, _: world.give(name)


@before_the_end(days=6)
async def remember_and_let_programs_in(world: Showcase) -> None:
    for key, text in REMEMBERED.items():
        await memories.remember(world.deps, world.me, key, text)
    caller = local_caller(world.me)
    for name, scopes, days in (
        ("Editor on the laptop", {Scope.READ, Scope.WRITE}, 90),
        ("Status light", {Scope.READ}, None),
    ):
        lifetime = None if days is None else timedelta(days=days)
        await credentials.create_token(
            world.deps, caller, frozenset(scopes), name=name, lifetime=lifetime
        )


@before_the_end(days=5)
async def open_folders(world: Showcase) -> None:
    def write(tx: Any) -> None:
        for path, instructions in FOLDERS.items():
            folder = Folder(
                path=path,
                read_only=not instructions,
                machine=MACHINE,
                machine_name="workshop",
                created_at=tx.now,
                instructions=instructions,
            )
            tx.folders.put(world.me, folder)

    world.database.run(write)


@before_the_end(seconds=0)
async def report_for_work(world: Showcase) -> None:
    report = WorkerReport(
        name="workshop:4211",
        host="workshop",
        version="0.1.0",
        started_at=NOW - timedelta(days=3),
        seats=6,
        seats_used=3,
    )
    world.database.run(lambda tx: tx.operations.report(report))
