"""Who imports programs, what becomes of them, and when they are started no more."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from support.doubles.engine import ScriptedEngine
from support.people.users import add_user
from support.requirements import requirement
from support.stage.make import MATE, USER
from support.stage.stage import Stage

from backburner.actions.connections import definitions, manage, own_programs
from backburner.actions.connections.imported_session import ImportedSession
from backburner.actions.connections.manage import NewConnection
from backburner.actions.connections.own_programs import NewProgram
from backburner.actions.deps import FolderRules
from backburner.actions.work import folders
from backburner.bus.local import LocalBus
from backburner.core.accounts import LOCAL_CLIENT_NAME, Caller, CredentialKind, Role, Scope
from backburner.core.connections.connection import ToolDefinition
from backburner.core.connections.own_program import READ_BY_ALL
from backburner.core.connections.program import StdioProgram
from backburner.core.errors import (
    BackburnerError,
    BadRequest,
    Conflict,
    ConnectionFailed,
    NotAllowed,
    NotFound,
)
from backburner.core.ids import UserId
from backburner.core.work.folders import SYSTEM_FOLDERS as NEVER_GIVEN
from backburner.core.work.folders import ForbiddenPlaces
from backburner.ports import Authorization, FolderContent, ToolList, ToolServer
from backburner.process.confinement import SYSTEM_FOLDERS
from backburner.store.db import Database
from backburner.vault.master_keys import MasterKeys
from backburner.vault.vault import SealingVault

KEY = "key-of-ada"
CLOCK = StdioProgram(command=("/usr/bin/clock", "--utc"), environment={"API_KEY": KEY})
FILE = "/srv/settings/mcp.json"


@dataclass
class Session:
    tools: Sequence[ToolDefinition]
    tools_changed: bool = False
    closed: bool = False

    async def list_tools(self) -> ToolList:
        return ToolList(tools=self.tools)

    async def call(self, name: str, arguments: Mapping[str, Any], **options: object) -> Any:
        raise AssertionError((name, arguments, options))

    async def close(self) -> None:
        self.closed = True


@dataclass
class Programs:
    """Stands for the servers; keeps the programs that would be started."""

    started: list[StdioProgram] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)

    def open(self, server: ToolServer, authorization: Authorization) -> Session:
        del authorization
        if server.program is not None:
            self.started.append(server.program)
        tools = [ToolDefinition(name="now"), ToolDefinition(name="list_issues")]
        self.sessions.append(session := Session(tools))
        return session


async def of_agents() -> Mapping[str, str]:
    return {"/data/workspaces": "the private workspaces", "/disk/u_1": "the private workspaces"}


async def read(path: str) -> FolderContent:
    return FolderContent(path=path, instructions={})


def caller(user: UserId = USER, **changes: object) -> Caller:
    usual: dict[str, object] = {
        "user": user,
        "role": Role.OPERATOR,
        "scopes": frozenset(Scope),
        "credential": "k_1",
        "kind": CredentialKind.TOKEN,
        "name": LOCAL_CLIENT_NAME,
    }
    return Caller(**(usual | changes))  # type: ignore[arg-type]


def new(program: StdioProgram = CLOCK, *, name: str = "clock", source: str = FILE) -> NewProgram:
    return NewProgram(name=name, program=program, source=source)


@pytest.fixture
def programs() -> Programs:
    return Programs()


@pytest.fixture
def stage(database: Database, programs: Programs, tmp_path: Path) -> Stage:
    rules = FolderRules(
        machine="00aa",
        may_be_added=True,
        forbidden=ForbiddenPlaces(homes=["/people/ada"], private={"/people/ada/.ssh": "sign-ins"}),
        read=read,
        of_agents=of_agents,
    )
    stage = Stage(
        database,
        LocalBus(),
        ScriptedEngine(),
        folders=rules,
        tool_servers=programs,
        vault=SealingVault(MasterKeys(tmp_path / "master_keys")),
    )
    stage.user()
    return stage


async def add(stage: Stage, program: StdioProgram = CLOCK, **more: str) -> None:
    await own_programs.add(stage.deps, caller(), new(program, **more))


async def names(stage: Stage, user: UserId = USER) -> list[str]:
    return [one.connection.name for one in await manage.list_connections(stage.deps, user)]


@requirement("Z-import")
async def test_a_program_is_sealed_started_and_listed(stage: Stage, programs: Programs) -> None:
    check = await own_programs.add(stage.deps, caller(), new())
    shown = await manage.show(stage.deps, USER, check.connection_id)
    name = f"connections/{check.connection_id}/program"
    sealed = stage.database.run(lambda tx: tx.secrets.load(USER, name))

    assert check.error is None
    assert [tool.name for tool in shown.tools if tool.is_offered] == ["list_issues", "now"]
    # The catalogue speaks of its own servers, whatever tools of others are called.
    assert not any(tool.read_only for tool in shown.tools)
    (started,) = programs.started
    assert started.command == CLOCK.command
    assert dict(started.environment) == {"API_KEY": KEY, "PATH": "/usr/bin:/usr/local/bin:/bin"}
    assert not started.network
    assert sealed is not None
    assert KEY.encode() not in sealed
    assert b"clock" not in sealed
    assert KEY not in repr(shown)


@requirement("Z-import")
@pytest.mark.parametrize(
    "other",
    [
        {"kind": CredentialKind.SESSION, "name": ""},
        {"name": "laptop token"},
        {"kind": CredentialKind.SESSION, "name": LOCAL_CLIENT_NAME},
    ],
)
async def test_only_the_local_command_line_imports_programs_whatever_the_scope(
    stage: Stage, programs: Programs, other: dict[str, object]
) -> None:
    for act in (own_programs.add, own_programs.check):
        with pytest.raises(NotAllowed, match="command line of the machine"):
            await act(stage.deps, caller(USER, **other), new())
    with pytest.raises(NotAllowed, match="command line of the machine"):
        await own_programs.check_source(stage.deps, caller(USER, **other), FILE)
    assert await names(stage) == []
    assert programs.started == []


@requirement("Z-import")
async def test_no_program_is_imported_where_users_share_an_install(stage: Stage) -> None:
    stage.database.run(lambda tx: add_user(tx, MATE))
    with pytest.raises(NotAllowed, match="more than one account"):
        await add(stage)
    stage.deps = replace(stage.deps, folders=replace(stage.deps.folders, may_be_added=False))
    with pytest.raises(NotAllowed, match="command line of the machine"):
        await add(stage)
    assert await names(stage) == []


@requirement("Z-import")
async def test_a_program_is_of_its_user_alone(stage: Stage) -> None:
    await add(stage)
    stage.database.run(lambda tx: add_user(tx, MATE))
    assert await names(stage, MATE) == []
    with pytest.raises(BackburnerError):
        await manage.add(stage.deps, caller(MATE), NewConnection(program="(imported)"))
    assert await names(stage, MATE) == []


@requirement("Z-import")
async def test_a_connection_cannot_be_pointed_at_an_imported_program(stage: Stage) -> None:
    with pytest.raises(BackburnerError, match="defined no program"):
        await manage.add(stage.deps, caller(), NewConnection(program="(imported)", name="x"))


@requirement("Z-import")
@pytest.mark.parametrize(
    ("program", "said"),
    [
        (StdioProgram(command=("clock",)), "begins with /"),
        (StdioProgram(command=("/usr/bin/npx", "--yes", "a")), "no exact version"),
        (StdioProgram(command=("/bin/sh", "-c", "x")), "is a shell"),
        (StdioProgram(command=("/bin/x", "a\x1b[1Ab")), "cannot be seen"),
        (StdioProgram(command=("/bin/x",), environment={"LD_PRELOAD": "/x"}), "which code runs"),
        (StdioProgram(command=("/bin/x",), environment={"A": "\0"}), "cannot be given"),
        (StdioProgram(command=("/bin/x",), readable=("/",)), "home folder"),
        (StdioProgram(command=("/bin/x",), readable=("/people",)), "home folder"),
        (StdioProgram(command=("/bin/x",), readable=("/people/ada",)), "home folder"),
        (StdioProgram(command=("/bin/x",), writable=("/people/ada/.ssh/a",)), "sign-ins"),
        (StdioProgram(command=("/bin/x",), readable=("/srv",) * 21), "20 folders"),
        (StdioProgram(command=("/data/workspaces/u/x",)), "agents can change it"),
        (StdioProgram(command=("/bin/x", "--a=/data/workspaces/x")), "agents can change it"),
        (StdioProgram(command=("/bin/x",), readable=("/data/workspaces/a",)), "could load what"),
        (StdioProgram(command=("/bin/x",), writable=("/data/workspaces",)), "could load what"),
        (StdioProgram(command=("/bin/x",), readable=("/disk",)), "could load what"),
    ],
)
async def test_what_must_not_run_is_refused_whoever_agreed_to_it(
    stage: Stage, programs: Programs, program: StdioProgram, said: str
) -> None:
    with pytest.raises(BadRequest, match=said):
        await add(stage, program)
    assert programs.started == []
    assert await names(stage) == []


@requirement("Z-import")
async def test_files_and_programs_in_folders_of_agents_are_refused(stage: Stage) -> None:
    await folders.add(stage.deps, caller(), "/srv/app", read_only=False)
    await folders.add(stage.deps, caller(), "/srv/library", read_only=True)
    for source in ("/srv/app/.mcp.json", "/data/workspaces/u_1/mcp.json"):
        with pytest.raises(BadRequest, match="agents can change it"):
            await add(stage, source=source)
    with pytest.raises(BadRequest, match="agents can change it"):
        await add(stage, StdioProgram(command=("/srv/app/bin/clock",)))
    await add(stage, source="/srv/library/.mcp.json")
    assert await names(stage) == ["clock"]


@requirement("Z-import")
@pytest.mark.parametrize(
    ("other", "may_be_added"),
    [({}, False), ({"name": "laptop token"}, True), ({"kind": CredentialKind.SESSION}, False)],
)
async def test_a_file_of_agents_is_refused_where_no_programs_are_imported_too(
    stage: Stage, other: dict[str, object], *, may_be_added: bool
) -> None:
    await folders.add(stage.deps, caller(), "/srv/app", read_only=False)
    rules = replace(
        stage.deps.folders, may_be_added=may_be_added, templates=("/srv/people/{login}",)
    )
    stage.deps = replace(stage.deps, folders=rules)
    user = caller(USER, **other)
    for path in ("/data/workspaces/u_1/mcp.json", "/srv/people/ada/x", "/srv/app/.mcp.json"):
        with pytest.raises(BadRequest, match="agents can change it"):
            await own_programs.check_source(stage.deps, user, path)
    with pytest.raises(NotAllowed, match="command line of the machine"):
        await own_programs.check_source(stage.deps, user, FILE)


async def test_a_client_elsewhere_learns_nothing_of_links_here_or_of_folders_of_others(
    stage: Stage,
) -> None:
    async def trace(path: str) -> Sequence[str]:
        raise AssertionError(path)

    await folders.add(stage.deps, caller(), "/srv/app", read_only=False)
    stage.deps = replace(stage.deps, folders=replace(stage.deps.folders, trace=trace))
    stage.database.run(lambda tx: add_user(tx, MATE))
    with pytest.raises(NotAllowed, match="command line of the machine"):
        await own_programs.check_source(
            stage.deps, caller(MATE, name="laptop token"), "/srv/app/.mcp.json"
        )


@requirement("Z-import")
async def test_the_places_that_the_settings_give_to_later_accounts_count_too(stage: Stage) -> None:
    rules = replace(stage.deps.folders, templates=("/srv/people/{login}",))
    stage.deps = replace(stage.deps, folders=rules)
    with pytest.raises(BadRequest, match="agents can change it"):
        await add(stage, source="/srv/people/nobody-yet/mcp.json")


@requirement("Z-import")
async def test_a_link_that_agents_can_turn_is_as_bad_as_a_file(stage: Stage) -> None:
    async def trace(path: str) -> Sequence[str]:
        return ["/srv/app/link", "/opt/clock"] if path == "/usr/bin/clock" else [path]

    rules = replace(stage.deps.folders, trace=trace)
    stage.deps = replace(stage.deps, folders=rules)
    await folders.add(stage.deps, caller(), "/srv/app", read_only=False)
    with pytest.raises(BadRequest, match="/srv/app/link lies in the folder /srv/app"):
        await add(stage)


@requirement("Z-import")
async def test_a_program_in_a_folder_that_came_later_is_not_started(
    stage: Stage, programs: Programs
) -> None:
    check = await own_programs.add(
        stage.deps, caller(), new(StdioProgram(command=("/srv/app/clock",)))
    )
    await folders.add(stage.deps, caller(), "/srv/app", read_only=False)
    programs.started.clear()
    again = await definitions.refresh(stage.deps, caller(), check.connection_id)
    assert again.error is not None
    assert "agents can change it" in again.error.message
    assert programs.started == []


@requirement("Z-import")
@pytest.mark.parametrize("folder", ["/code/mono/app", "/code/mono", "/code"])
@pytest.mark.parametrize(
    "program",
    [
        replace(CLOCK, readable=("/srv/zones", "/code/mono")),
        replace(CLOCK, writable=("/code/mono",)),
    ],
)
async def test_agents_write_nothing_that_a_program_could_load(
    stage: Stage, programs: Programs, folder: str, program: StdioProgram
) -> None:
    check = await own_programs.add(stage.deps, caller(), new(program))
    await folders.add(stage.deps, caller(), folder, read_only=False)
    said = f"what agents write in the folder {folder}."
    with pytest.raises(BadRequest, match=said):
        await add(stage, program, name="again")
    again = await definitions.refresh(stage.deps, caller(), check.connection_id)
    assert again.error is not None
    assert said in again.error.message
    assert len(programs.started) == 1

    await folders.add(stage.deps, caller(), folder, read_only=True)
    assert (await definitions.refresh(stage.deps, caller(), check.connection_id)).error is None


@requirement("Z-import")
async def test_what_every_program_may_read_counts_too(stage: Stage) -> None:
    open_to_all = [str(folder) for folder in SYSTEM_FOLDERS if folder.parts[1] not in NEVER_GIVEN]
    assert sorted(READ_BY_ALL) == sorted(open_to_all)
    await folders.add(stage.deps, caller(), "/opt/app", read_only=False)
    with pytest.raises(BadRequest, match="may read /opt could load"):
        await add(stage)


@requirement("Z-import")
async def test_a_folder_that_is_read_only_to_one_account_is_not_to_others(stage: Stage) -> None:
    await folders.add(stage.deps, caller(), "/srv/app", read_only=True)
    await add(stage, replace(CLOCK, readable=("/srv/app",)))
    [folder] = stage.database.run(lambda tx: tx.folders.list(USER))
    stage.database.run(lambda tx: add_user(tx, MATE))
    stage.database.run(lambda tx: tx.folders.put(MATE, replace(folder, read_only=False)))
    with pytest.raises(BadRequest, match="could load what agents write in the folder /srv/app"):
        await add(stage, replace(CLOCK, readable=("/srv/app",)))


@requirement("Z-import")
async def test_a_folder_that_comes_during_a_run_ends_the_program_at_its_next_call(
    stage: Stage, programs: Programs
) -> None:
    program = replace(CLOCK, readable=("/srv/mono",))
    check = await own_programs.add(stage.deps, caller(), new(program))
    connection = stage.database.run(lambda tx: tx.connections.load(USER, check.connection_id))
    session = ImportedSession(stage.deps, connection)
    await session.list_tools()
    await folders.add(stage.deps, caller(), "/srv/mono/app", read_only=False)

    with pytest.raises(ConnectionFailed, match="could load what agents write"):
        await session.call("now", {})
    assert programs.sessions[-1].closed
    assert len(programs.started) == 2
    await folders.remove(stage.deps, USER, "/srv/mono/app")
    await session.list_tools()
    assert len(programs.started) == 3
    await session.close()


@requirement("Z-import")
async def test_importing_twice_changes_nothing_and_a_clash_is_said(
    stage: Stage, programs: Programs
) -> None:
    await add(stage)
    await add(stage)
    assert len(programs.started) == 1
    assert await names(stage) == ["clock"]
    assert await own_programs.check(stage.deps, caller(), new()) is not None
    for other in (
        replace(CLOCK, environment={"API_KEY": "another"}),
        replace(CLOCK, network=True),
        replace(CLOCK, command=("/usr/bin/clock",)),
    ):
        with pytest.raises(Conflict, match="it is another one"):
            await add(stage, other)
    await manage.add(stage.deps, caller(), NewConnection(url="https://a.example/mcp", name="a"))
    with pytest.raises(Conflict, match="it is another one"):
        await add(stage, name="a")


@requirement("Z-import")
async def test_a_program_is_started_on_its_own_machine_alone(
    stage: Stage, programs: Programs
) -> None:
    check = await own_programs.add(stage.deps, caller(), new())
    programs.started.clear()
    # As after a backup is restored elsewhere: nobody there has agreed to what is at its path.
    elsewhere = replace(stage.deps.folders, machine="00bb")
    stage.deps = replace(stage.deps, folders=elsewhere)
    again = await definitions.refresh(stage.deps, caller(), check.connection_id)
    assert again.error is not None
    assert "imported on another machine" in again.error.message
    assert programs.started == []


async def test_a_program_is_shown_to_its_user_alone(stage: Stage) -> None:
    check = await own_programs.add(stage.deps, caller(), new())
    stage.database.run(lambda tx: add_user(tx, MATE))
    assert await own_programs.show(stage.deps, USER, check.connection_id) == CLOCK
    with pytest.raises(NotFound):
        await own_programs.show(stage.deps, MATE, check.connection_id)
    other = await manage.add(stage.deps, caller(), NewConnection(url="https://a.example/mcp"))
    with pytest.raises(NotFound, match="not an imported program"):
        await own_programs.show(stage.deps, USER, other.connection_id)


async def test_a_program_whose_secret_is_gone_says_so(stage: Stage) -> None:
    check = await own_programs.add(stage.deps, caller(), new())
    stage.database.run(lambda tx: tx.secrets.remove(USER, "connections/"))
    again = await definitions.refresh(stage.deps, caller(), check.connection_id)
    assert again.error is not None
    assert "is gone" in again.error.message
    with pytest.raises(Conflict):
        await add(stage)


async def test_what_the_catalogue_says_counts_for_its_own_address_only(stage: Stage) -> None:
    deps = stage.deps
    for url, name in (
        ("https://mcp.linear.app/mcp", "ours"),
        ("https://mcp.linear.app/mcp?x=1", "more"),
        ("https://linear.example/mcp", "linear"),
    ):
        await manage.add(deps, caller(), NewConnection(url=url, name=name))
    shown = {one.connection.name: one for one in await manage.list_connections(deps, USER)}
    reads = {name: {t.name for t in one.tools if t.read_only} for name, one in shown.items()}
    assert reads == {"ours": {"list_issues"}, "more": set(), "linear": set()}


async def test_no_program_is_started_for_a_session_that_was_closed(
    stage: Stage, programs: Programs
) -> None:
    check = await own_programs.add(stage.deps, caller(), new())
    connection = stage.database.run(lambda tx: tx.connections.load(USER, check.connection_id))
    programs.started.clear()
    session = ImportedSession(stage.deps, connection)
    listing = asyncio.create_task(session.list_tools())
    # It reads what is sealed of the program in a thread.
    await asyncio.sleep(0)
    await session.close()

    with pytest.raises(ConnectionFailed, match="is closed"):
        await listing
    assert programs.started == []
