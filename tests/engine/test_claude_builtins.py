"""Claude Code's own tools, where they are switched on: with the real program, through the gate."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from support.model_api import CallTool, ModelApi, Say
from support.requirements import requirement
from support.stage.make import USER

from backburner.core.tool_policy import GrantMatch
from backburner.engine.claude.builtins import SERVER
from backburner.engine.claude.engine import ClaudeEngine, Model
from backburner.ports import ToolResult
from backburner.process.launcher import CleanLauncher

pytest.register_assert_rewrite("support.contracts.engine")

from support.contracts.engine.stopping import ASKED  # noqa: E402
from support.contracts.engine.trial import PATIENCE, Trial  # noqa: E402

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

    def engine(self, *, stall: timedelta = PATIENCE) -> ClaudeEngine:
        headers = {"x-api-key": "secret"}
        engine = ClaudeEngine(
            Model(name=self.model, address=self.api.address, headers=headers, stall=stall),
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
async def test_a_command_that_may_not_be_run_yet_ends_the_turn_and_is_run_once_when_it_may(
    claude: Claude,
) -> None:
    claude.api.then(Say("Writing."), CallTool("Bash", WRITE))
    claude.api.then(CallTool("Bash", WRITE))
    claude.api.then(Say("It is written."))
    trial, lines = Trial(claude), claude.workspace / "lines.txt"
    trial.gate.answers.append(ASKED)

    asked = await trial.turn("Write a line.")

    assert asked.ended is None
    assert len(claude.api.requests) == 1
    assert not lines.exists()

    heard = await trial.turn("The owner said yes.")

    assert heard.end.text == "It is written."
    assert lines.read_text() == "line\n"
    assert claude.api.requests[1].holds(ASKED.text)
    assert trial.gate.called == [("Bash", WRITE)] * 2
    tool = trial.gate.calls[0][0].tool
    assert (tool.server, tool.free, tool.grant_match) == (SERVER, False, GrantMatch.COMMAND)


async def test_what_only_reads_is_free_and_no_further_than_the_workspace(claude: Claude) -> None:
    inside, beyond = claude.workspace / "notes.txt", claude.folder / "secret.txt"
    inside.write_text("Buy eggs.\n")
    beyond.write_text("battery-staple\n")
    claude.api.then(*(CallTool("Read", {"file_path": str(path)}) for path in (inside, beyond)))
    trial = Trial(claude)

    heard = await trial.turn("Read both.")

    assert heard.ended
    assert claude.api.requests[1].holds("Buy eggs.")
    assert not claude.api.holds("battery-staple")
    assert {(offer.tool.free, offer.read_only) for offer, _ in trial.gate.calls} == {(True, True)}
    assert len(trial.gate.calls) == 2


@pytest.mark.parametrize(
    ("tool", "arguments"), [("Bash", WRITE), ("Bash", {"command": "exit 3"})], ids=["well", "badly"]
)
async def test_a_call_of_these_too_may_be_the_last_thing_done(
    claude: Claude, tool: str, arguments: dict[str, str]
) -> None:
    claude.api.then(CallTool(tool, arguments))
    trial = Trial(claude)
    trial.gate.stops = True

    heard = await trial.turn()

    assert heard.ended is None
    assert len(claude.api.requests) == 1
    assert len(trial.gate.calls) == 1
    trial.gate.stops = False
    assert (await trial.turn("Go on.")).ended
    assert claude.api.requests[1].holds(arguments["command"])
    assert not claude.api.requests[1].holds("Nothing more may be asked")


async def test_what_the_gate_refuses_is_told_to_the_agent_which_goes_on(claude: Claude) -> None:
    claude.api.then(CallTool("Bash", WRITE))
    claude.api.then(Say("Then not."))
    trial = Trial(claude)
    trial.gate.answers.append(ToolResult("Bash is not among the tools of this work.", failed=True))

    heard = await trial.turn()

    assert heard.end.text == "Then not."
    assert claude.api.requests[1].holds("Bash is not among the tools of this work.")
    assert not (claude.workspace / "lines.txt").exists()


async def test_tools_that_are_not_switched_on_are_not_there(claude: Claude) -> None:
    await Trial(claude).turn()

    own = [name for name in claude.api.requests[0].tools if not name.startswith("mcp__")]
    assert sorted(own) == ["Bash", "Read"]
