"""Claude Code's own tools, where they are switched on: real program, through the gate."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.model_api import CallTool, ModelApi, Say
from support.requirements import requirement
from support.stage.make import USER

from backburner.core.tool_policy import GrantMatch
from backburner.engine.claude.builtins import BUILTIN_SERVER, Hooks
from backburner.engine.claude.engine import ClaudeEngine, ClaudeModel
from backburner.engine.claude.relay import Line
from backburner.engine.claude.tools import TurnTools
from backburner.ports import Offer, ToolResult
from backburner.process.launcher import CleanLauncher

pytest.register_assert_rewrite("support.contracts.engine")

from support.contracts.engine.harness import STALL_LIMIT, EngineHarness  # noqa: E402
from support.contracts.engine.stopping import ASKED  # noqa: E402

WRITE = {"command": "echo line >>lines.txt", "description": "Write a line."}


@dataclass
class Claude:
    api: ModelApi
    folder: Path
    made: list[ClaudeEngine] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        return self.folder / "workspaces" / USER

    @property
    def model(self) -> str:
        return "claude-sonnet-4-5"

    def engine(self, *, stall: timedelta = STALL_LIMIT) -> ClaudeEngine:
        headers = {"x-api-key": "secret"}
        engine = ClaudeEngine(
            ClaudeModel(name=self.model, address=self.api.address, headers=headers, stall=stall),
            launcher=CleanLauncher(),
            homes=self.folder / "homes",
            workspace=lambda user: self.folder / "workspaces" / user,
            builtins=("Bash", "Read"),
            warm=0,
        )
        self.made.append(engine)
        return engine


@pytest.fixture
async def claude(tmp_path: Path) -> AsyncIterator[Claude]:
    async with ModelApi() as api:
        subject = Claude(api, tmp_path)
        subject.workspace.mkdir(parents=True)
        yield subject
        for engine in subject.made:
            await engine.close()
        assert api.complaints == []


@requirement("Z-approve")
async def test_a_command_that_needs_approval_ends_the_turn_and_runs_once_after_it(
    claude: Claude,
) -> None:
    claude.api.then(Say("Writing."), CallTool("Bash", WRITE))
    claude.api.then(CallTool("Bash", WRITE))
    claude.api.then(Say("It is written."))
    harness, lines = EngineHarness(claude), claude.workspace / "lines.txt"
    harness.gate.answers.append(ASKED)

    asked = await harness.turn("Write a line.")

    assert asked.ended is None
    assert len(claude.api.requests) == 1
    assert not lines.exists()

    result = await harness.turn("The owner said yes.")

    assert result.end.text == "It is written."
    assert lines.read_text() == "line\n"
    assert claude.api.requests[1].holds(ASKED.text)
    assert harness.gate.called == [("Bash", WRITE)] * 2
    tool = harness.gate.calls[0][0].tool
    assert (tool.server, tool.free, tool.grant_match) == (BUILTIN_SERVER, False, GrantMatch.COMMAND)


async def test_reading_tools_need_no_approval_and_read_only_the_workspace(claude: Claude) -> None:
    inside, beyond = claude.workspace / "notes.txt", claude.folder / "secret.txt"
    inside.write_text("Buy eggs.\n")
    beyond.write_text("battery-staple\n")
    claude.api.then(*(CallTool("Read", {"file_path": str(path)}) for path in (inside, beyond)))
    harness = EngineHarness(claude)

    result = await harness.turn("Read both.")

    assert result.ended
    assert claude.api.requests[1].holds("Buy eggs.")
    assert not claude.api.holds("battery-staple")
    assert {(offer.tool.free, offer.read_only) for offer, _ in harness.gate.calls} == {(True, True)}
    assert len(harness.gate.calls) == 2


@pytest.mark.parametrize(
    ("tool", "arguments"), [("Bash", WRITE), ("Bash", {"command": "exit 3"})], ids=["well", "badly"]
)
async def test_a_call_of_a_builtin_tool_can_end_the_turn(
    claude: Claude, tool: str, arguments: dict[str, str]
) -> None:
    claude.api.then(CallTool(tool, arguments))
    harness = EngineHarness(claude)
    harness.gate.stops = True

    result = await harness.turn()

    assert result.ended is None
    assert len(claude.api.requests) == 1
    assert len(harness.gate.calls) == 1
    harness.gate.stops = False
    assert (await harness.turn("Go on.")).ended
    assert claude.api.requests[1].holds(arguments["command"])
    assert not claude.api.requests[1].holds("No further calls are allowed")


async def test_a_refusal_of_the_gate_is_reported_to_the_agent_which_continues(
    claude: Claude,
) -> None:
    claude.api.then(CallTool("Bash", WRITE))
    claude.api.then(Say("Then not."))
    harness = EngineHarness(claude)
    harness.gate.answers.append(
        ToolResult("Bash is not among the tools of this work.", failed=True)
    )

    result = await harness.turn()

    assert result.end.text == "Then not."
    assert claude.api.requests[1].holds("Bash is not among the tools of this work.")
    assert not (claude.workspace / "lines.txt").exists()


async def test_builtin_tools_that_are_not_switched_on_are_not_offered(claude: Claude) -> None:
    await EngineHarness(claude).turn()

    own = [name for name in claude.api.requests[0].tools if not name.startswith("mcp__")]
    assert sorted(own) == ["Bash", "Read"]


class RefusingGate:
    def __init__(self) -> None:
        self.offers: list[Offer] = []

    async def call(self, offer: Offer, arguments: Mapping[str, Any]) -> ToolResult:
        del arguments
        self.offers.append(offer)
        return ToolResult("No.", failed=True)


#: The folder that the program says it works in, from the workspace.
WORKS_IN = ["", ".git", ".git/hooks", ".."]


@pytest.mark.parametrize("works_in", WORKS_IN)
@pytest.mark.parametrize(
    ("path", "matches"),
    [
        ("notes.txt", GrantMatch.TOOL),
        (".git/hooks/pre-commit", GrantMatch.NOTHING),
        ("link/hooks/pre-commit", GrantMatch.NOTHING),
        ("../other/notes.txt", GrantMatch.NOTHING),
        ("", GrantMatch.NOTHING),
    ],
)
@pytest.mark.parametrize("name", ["Write", "Edit", "NotebookEdit"])
async def test_no_lasting_grant_covers_files_that_other_programs_obey(
    tmp_path: Path, name: str, path: str, matches: GrantMatch, works_in: str
) -> None:
    folder = tmp_path / ".local" / "workspace"
    argument = "notebook_path" if name == "NotebookEdit" else "file_path"
    arguments = {argument: str(folder / path) if path else None}

    assert await match_of(folder, name, arguments, works_in) is matches


@pytest.mark.parametrize(
    ("works_in", "path", "matches"),
    [
        ("", "notes.txt", GrantMatch.TOOL),
        ("src", "notes.txt", GrantMatch.TOOL),
        (".git", "config", GrantMatch.NOTHING),
        (".git/hooks", "pre-commit", GrantMatch.NOTHING),
        ("src", "../.git/config", GrantMatch.NOTHING),
        ("..", "notes.txt", GrantMatch.NOTHING),
        (None, "notes.txt", GrantMatch.NOTHING),
    ],
)
async def test_a_relative_path_is_one_from_where_the_program_works(
    tmp_path: Path, works_in: str | None, path: str, matches: GrantMatch
) -> None:
    folder = tmp_path / "workspace"

    assert await match_of(folder, "Write", {"file_path": path}, works_in) is matches


@pytest.mark.parametrize(
    ("name", "in_folder"), [("Bash", True), ("Task", True), ("WebFetch", False)]
)
async def test_tools_that_may_reach_files_work_in_the_folder(
    tmp_path: Path, name: str, *, in_folder: bool
) -> None:
    gate = RefusingGate()
    hooks = Hooks(TurnTools({}, gate=gate), Line("http://127.0.0.1:1/line"), tmp_path)  # type: ignore[arg-type]
    (before,) = hooks.matchers()["PreToolUse"][0].hooks
    call: Any = {"tool_name": name, "tool_input": {}}
    await before(call, "one", {"signal": None})

    assert [offer.in_folder for offer in gate.offers] == [in_folder]


async def match_of(
    folder: Path, name: str, arguments: Mapping[str, Any], works_in: str | None
) -> GrantMatch:
    """Return what a lasting grant for a call would cover."""
    (folder / ".git" / "hooks").mkdir(parents=True)
    (folder / "link").symlink_to(".git")
    gate = RefusingGate()
    line = Line("http://127.0.0.1:1/line")
    hooks = Hooks(TurnTools({}, gate=gate), line, folder)  # type: ignore[arg-type]
    (before,) = hooks.matchers()["PreToolUse"][0].hooks
    call: Any = {"tool_name": name, "tool_input": arguments}
    if works_in is not None:
        call["cwd"] = str(folder / works_in)
    await before(call, "one", {"signal": None})
    (offer,) = gate.offers
    return offer.tool.grant_match
