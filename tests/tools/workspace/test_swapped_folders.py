"""A folder, or one above it, becomes a link within a call: nothing behind the link is used."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.doubles.tools import ALONE
from support.faults.swapping import SECRET, SwappedFolder
from support.programs.signed_in import SignedInOwner
from support.requirements import requirement
from support.stage.until import until

from backburner.core.commands import Cage
from backburner.core.conversation import WorkFolder
from backburner.gateway.network import CheckedNetwork
from backburner.ports import CommandResult, ToolResult
from backburner.process.shell import ConfinedShell
from backburner.tools.workspace import check_folder, workspace_offers

ROUNDS = 200
CALLS: dict[str, dict[str, Any]] = {
    "read_file": {"path": "canary"},
    "write_file": {"path": "new/file", "content": "planted"},
    "list_files": {"glob": "**"},
    "run_command": {"command": "cat canary .envrc; chmod 777 .; echo x >planted; rm -f .envrc"},
    "run_signed_in": {"program": "gh", "arguments": ["api", "read", "canary"]},
}


async def yes() -> bool:
    return True


class Place(SwappedFolder):
    """A folder that agents use, and another one that they must not."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.owner = self.root / "owner"
        self.owner.mkdir()
        folder = WorkFolder(str(self.folder))
        self.terms = replace(ALONE, cage=Cage.WORK, folder=folder, may_sign_in=True)

    async def call(self, tool: str, shell: ConfinedShell | None = None) -> ToolResult:
        sign_ins = SignedInOwner(self.owner).sign_ins() if tool == "run_signed_in" else None
        offers = workspace_offers(
            self.folder,
            self.root / "kept",
            shell or ConfinedShell(),
            CheckedNetwork(),
            self.terms,
            sign_ins,
        )
        offer = next(offer for offer in offers if offer.tool.name == tool)
        return await offer.run(CALLS[tool])

    def check_refused(self, result: ToolResult) -> None:
        self.check_untouched()
        assert result.failed, result.text
        assert SECRET not in result.text


@pytest.fixture(params=[False, True], ids=["the folder", "the folder above"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    return Place(tmp_path, above=request.param)


@requirement("B-folder")
@pytest.mark.parametrize("tool", CALLS)
async def test_a_folder_that_becomes_a_link_after_the_check_is_not_used(
    place: Place, tool: str
) -> None:
    # As the gate does, before the call.
    check_folder(place.folder, removed=False)
    place.swap()

    place.check_refused(await place.call(tool))


class SwappingShell(ConfinedShell):
    """Swaps when all is looked at and compared, just before the command starts."""

    def __init__(self, swap: Callable[[], None]) -> None:
        super().__init__()
        self._swap = swap

    async def run(self, *arguments: Any, **more: Any) -> CommandResult:
        self._swap()
        return await super().run(*arguments, **more)


@requirement("B-folder")
@pytest.mark.parametrize("has_others", [False, True], ids=["alone", "with others"])
@pytest.mark.parametrize("cage", Cage)
async def test_a_folder_that_becomes_a_link_before_the_cage_is_closed_is_not_used(
    place: Place, cage: Cage, *, has_others: bool
) -> None:
    place.terms = replace(place.terms, cage=cage)
    if has_others:
        place.terms = replace(place.terms, has_others=yes)

    place.check_refused(await place.call("run_command", SwappingShell(place.swap)))


@requirement("B-folder")
async def test_a_folder_that_becomes_a_link_while_a_command_runs_is_not_searched(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = {"command": "touch begun; until [ -e go ]; do sleep 0.01; done"}
    monkeypatch.setitem(CALLS, "run_command", waits)
    running = asyncio.create_task(place.call("run_command"))
    await until((place.folder / "begun").exists)
    place.swap()
    (place.moved / "go").touch()

    place.check_refused(await running)


async def test_a_private_workspace_may_be_a_link_that_the_operator_made(tmp_path: Path) -> None:
    real, link = tmp_path / "disk" / "user", tmp_path / "workspaces"
    real.mkdir(parents=True)
    link.symlink_to(real.parent)
    made = workspace_offers(
        link / "user", tmp_path / "kept", ConfinedShell(), CheckedNetwork(), ALONE
    )
    offers = {offer.tool.name: offer for offer in made}

    await offers["write_file"].run({"path": "note", "content": "Hello."})
    ran = await offers["run_command"].run({"command": f"cat note {link}/user/note; echo x >new"})

    assert (real / "note").read_text() == "Hello."
    assert ran.text.startswith("Hello.Hello.")
    assert (real / "new").exists()


@requirement("B-folder")
@pytest.mark.parametrize("tool", ["read_file", "write_file", "list_files"])
async def test_no_moment_is_one_in_which_a_link_is_followed(place: Place, tool: str) -> None:
    (place.folder / "canary").write_text("public")
    with place.swapping():
        results = [await place.call(tool) for _ in range(ROUNDS)]

    place.check_untouched()
    assert not any(SECRET in result.text or ".envrc" in result.text for result in results)
