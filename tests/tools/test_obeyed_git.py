"""Commands that make git, run later by the user, obey a file of theirs; and ordinary work."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.doubles.tools import ALONE
from support.requirements import requirement

from backburner.gateway.network import CheckedNetwork
from backburner.ports import Offer, ToolResult
from backburner.process.shell import ConfinedShell
from backburner.tools.workspace import workspace_offers

BASH = shutil.which("bash") or "bash"
#: Everybody may run it, and it shows that somebody did.
PLANT = "printf '#!/bin/sh\\ntouch MARK\\n' >{0}; chmod +x {0}"


@dataclass
class Workspace:
    folder: Path
    mark: Path
    tools: dict[str, Offer]

    def user(self, line: str) -> str:
        """Run a line as the user, outside any cage; it need not succeed."""
        names = {f"GIT_{who}_NAME": "x" for who in ("AUTHOR", "COMMITTER")}
        emails = {f"GIT_{who}_EMAIL": "x@x" for who in ("AUTHOR", "COMMITTER")}
        home = {"HOME": str(self.mark.parent), "PATH": os.environ["PATH"], "GIT_EDITOR": "true"}
        done = subprocess.run(
            [BASH, "-c", line],
            cwd=self.folder / "proj",
            check=False,
            capture_output=True,
            text=True,
            env=home | names | emails,
        )
        return done.stdout + done.stderr

    async def run(self, command: str) -> ToolResult:
        arguments = {"command": command.replace("MARK", str(self.mark))}
        return await self.tools["run_command"].run(arguments)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    folder = tmp_path / "folder"
    (folder / "proj").mkdir(parents=True)
    offers = workspace_offers(folder, tmp_path / "kept", ConfinedShell(), CheckedNetwork(), ALONE)
    made = Workspace(folder, tmp_path / "ran", {offer.tool.name: offer for offer in offers})
    made.user("git init -q -b main; git commit -q --allow-empty -m x")
    return made


SHARES_SETTINGS = (
    "mkdir -p {0}/worktrees; mv proj {0}/worktrees/proj; ln -s {0}/worktrees/proj proj;"
    " cp -r proj/.git/objects proj/.git/refs {0}; cp proj/.git/config {0}/config;"
    " cp proj/.git/HEAD proj/HEAD; rm -rf proj/.git; echo ../.. >proj/commondir;"
    " printf '[core]\\n\\tworktree = %s\\n\\tsshCommand = touch MARK\\n' $PWD/proj >>{0}/config"
)


@requirement("B-command")
@pytest.mark.parametrize("above", ["x", "node_modules/x.git", "x/.git/objects", "."])
async def test_a_folder_shares_no_settings_that_nobody_watches(
    workspace: Workspace, above: str
) -> None:
    ran = await workspace.run(f"mkdir -p {above}; {SHARES_SETTINGS.format(above)}")
    workspace.user("git fetch ssh://host/x; git -C . status")

    assert not workspace.mark.exists()
    assert ran.asks


@requirement("B-command")
@pytest.mark.parametrize("above", ["x", "."])
async def test_settings_that_a_folder_shares_with_one_above_it_are_watched(
    workspace: Workspace, above: str
) -> None:
    evil = "printf '[core]\\n\\tsshCommand = touch MARK\\n'"
    line = SHARES_SETTINGS.format(above).rpartition(";")[0]
    workspace.user(f"cd ..; mkdir -p {above}; {line}")
    assert "main" in workspace.user("git branch -a")

    ran = await workspace.run(f"{evil} >>{above}/config")
    workspace.user("git fetch ssh://host/x")
    written = await workspace.tools["write_file"].run(
        {"path": f"{above}/hooks/pre-commit".removeprefix("./"), "content": "x"}
    )

    assert not workspace.mark.exists()
    assert len(ran.asks) == 1
    assert written.failed


ORDINARY = """
git init -q -b main one; cd one; git config user.name Ann; git remote add origin https://a.org/x.git
for x in 1 2 3; do echo $x >f$x; git add .; git commit -qm $x; done
git branch -q topic HEAD~2; git checkout -q topic; echo z >f2; git add .; git commit -qm z
git branch remotes/x; git branch branches/x; git branch opts; git branch strategy
git update-ref refs/remotes/origin/topic topic; git branch -q -u origin/topic topic
echo y >f9; git add .; git stash -q; git stash pop -q; git commit -qm y
git merge -q -s ours -m merged main~1; git rebase -q -s recursive -X ours main~2 topic
"""
STOPS = """
cd one; GIT_SEQUENCE_EDITOR='sed -i 1s/^pick/edit/' git rebase -q -s ort -X theirs -i main~2 topic
"""
STOPS_AGAIN = """
cd one; git rebase --abort; git checkout -q topic; echo a >f3; git add .; git commit -qm a
git cherry-pick -s -X patience main~1 main
"""


async def test_ordinary_work_with_git_asks_nothing(workspace: Workspace) -> None:
    made = workspace.folder / "one" / ".git"
    for lines, left in (
        (ORDINARY, "ORIG_HEAD"),
        (STOPS, "rebase-merge/strategy"),
        (STOPS_AGAIN, "sequencer/opts"),
        ("cd one; git cherry-pick --abort; git remote remove origin", "HEAD"),
    ):
        ran = await workspace.run(lines)

        assert [text for _, text in ran.asks] == []
        assert (made / left).exists(), ran.text


async def test_of_a_new_worktree_only_its_pointer_is_asked_about(workspace: Workspace) -> None:
    ran = await workspace.run("git -C proj worktree add -q ../tree")

    ((_, shown),) = ran.asks
    assert shown.startswith("Create the file tree/.git:")


@requirement("B-command")
@pytest.mark.parametrize(
    ("folder", "file"),
    [(".cargo", "config.toml"), (".hg", "hgrc"), (".github", "copilot-instructions.md")],
)
async def test_a_folder_with_obeyed_files_is_watched_as_a_link_too(
    workspace: Workspace, folder: str, file: str
) -> None:
    link = workspace.folder / folder
    ran = await workspace.run(f"mkdir lib; echo evil >lib/{file}; ln -s lib {folder}")

    assert len(ran.asks) == 1
    assert not link.is_symlink()

    (workspace.folder / "lib" / file).write_text("of the user")
    link.symlink_to("lib")
    ran = await workspace.run(f"echo evil >lib/{file}; echo evil >lib/other")

    assert len(ran.asks) == 1
    assert (link / file).read_text() == "of the user"


@requirement("B-command")
async def test_a_link_in_a_repository_is_put_back_wherever_it_leads(workspace: Workspace) -> None:
    workspace.user("for x in 1 2 3; do git commit -q --allow-empty -m $x; done")

    ran = await workspace.run(
        "cd proj; GIT_SEQUENCE_EDITOR='sed -i 1s/^pick/edit/' git rebase -q -i HEAD~2 --empty=keep;"
        " mv .git/rebase-merge state; ln -s ../state .git/rebase-merge;"
        " echo 'exec touch MARK' >state/git-rebase-todo"
    )
    workspace.user("git rebase --continue")

    assert not workspace.mark.exists()
    assert len(ran.asks) == 1


async def test_objects_of_a_repository_that_a_link_leads_to_are_not_read(
    workspace: Workspace,
) -> None:
    workspace.user("mv .git/objects ../store; ln -s ../../store .git/objects")

    ran = await workspace.run(
        "cd proj; echo x >x; git add x; git commit -qm x; echo >../store/config"
    )

    assert ran.asks == []


@requirement("B-command")
@pytest.mark.parametrize(
    "plants",
    [
        'mkdir -p .git/remotes; echo "URL: $PWD/../node_modules/r" >.git/remotes/origin',
        'mkdir -p .git/branches; echo "$PWD/../node_modules/r" >.git/branches/origin',
        "ln -s ../node_modules/r origin",
    ],
    ids=["remotes", "branches", "folder"],
)
async def test_a_push_goes_where_it_went_before_a_command(
    workspace: Workspace, plants: str
) -> None:
    workspace.user(
        "git remote add origin https://user.invalid/r; git config push.default current;"
        " git config branch.main.remote origin; git config branch.main.merge refs/heads/main"
    )

    ran = await workspace.run(
        f"git init -q --bare node_modules/r; {PLANT.format('node_modules/r/hooks/pre-receive')};"
        f" cd proj; sed -i '/^\\[remote \"origin\"\\]/,/fetch/d' .git/config; {plants}"
    )
    workspace.user("git push")

    assert not workspace.mark.exists()
    assert "user.invalid" in workspace.user("git remote -v")
    assert any("Change the file proj/.git/config" in text for _, text in ran.asks)


@requirement("B-command")
@pytest.mark.parametrize("folder", ["remotes", "branches"])
async def test_no_remote_is_made_outside_the_settings(workspace: Workspace, folder: str) -> None:
    ran = await workspace.run(f"cd proj/.git; mkdir -p {folder}; echo 'URL: ../x' >{folder}/x")

    assert len(ran.asks) == 1
    assert not (workspace.folder / "proj" / ".git" / folder / "x").exists()


@requirement("B-command")
@pytest.mark.parametrize(
    ("stops", "plants", "continues"),
    [
        (
            (
                "GIT_SEQUENCE_EDITOR='sed -i 1s/^pick/edit/' git rebase -q -i HEAD~2;"
                " git commit -q --amend -m changed"
            ),
            "echo e/x >.git/rebase-merge/strategy",
            "git rebase --continue",
        ),
        (
            (
                "git tag t; git reset -q --hard HEAD~2; echo z >f2; git add .; git commit -qm z;"
                " git cherry-pick t~1 t"
            ),
            "git config -f .git/sequencer/opts options.strategy e/x; echo r >f2; git add f2",
            "git cherry-pick --continue",
        ),
    ],
    ids=["rebase", "cherry-pick"],
)
async def test_what_continues_later_runs_no_strategy_of_a_command(
    workspace: Workspace, stops: str, plants: str, continues: str
) -> None:
    workspace.user("for x in 1 2 3; do echo $x >f$x; git add .; git commit -qm $x; done")

    ran = await workspace.run(
        f"cd proj; {stops}; mkdir git-merge-e; {PLANT.format('git-merge-e/x')}; {plants}"
    )
    said = workspace.user(continues)

    assert not workspace.mark.exists(), said
    assert len(ran.asks) == 1


@requirement("B-command")
async def test_a_program_in_settings_is_watched_with_the_files_it_is_given(
    workspace: Workspace,
) -> None:
    workspace.user(
        "echo x >a; touch watch.py main; mkdir docs; git add .; git commit -qm a;"
        " git config branch.main.description main;"
        f" git config core.fsmonitor 'python3 watch.py docs {'a' * 300} b/{'c' * 300}'"
    )

    ran = await workspace.run(
        "cd proj; echo 'import os; os.system(\"touch MARK\")' >watch.py;"
        " for x in main docs/a python3; do echo x >$x; done"
    )
    workspace.user("git status")

    assert not workspace.mark.exists()
    assert [text.split(":")[0] for _, text in ran.asks] == ["Change the file proj/watch.py"]
