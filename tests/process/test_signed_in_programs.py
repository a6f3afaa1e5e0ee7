"""Programs with their own sign-in: they work, and nobody else sees it."""

import asyncio
import shlex
import shutil
import stat
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from support.faults.canaries import canary, found_in, write_scan
from support.programs.families import SOON
from support.programs.signed_in import PYTHON, SignedInOwner
from support.requirements import requirement

from backburner.core.commands import Cage
from backburner.core.errors import BadRequest, ProcessFailed
from backburner.ports import CommandBounds, CommandResult
from backburner.process.excerpt import REDACTED, Excerpt
from backburner.process.shell import ConfinedShell
from backburner.process.sign_ins.runner import SignedInPrograms


@pytest.fixture
def owner(tmp_path: Path) -> SignedInOwner:
    return SignedInOwner(tmp_path)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make temporary folders in a folder of the test, to see whether one is left."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return temporary


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def use(
    owner: SignedInOwner,
    *words: str,
    sign_ins: SignedInPrograms | None = None,
    below: str = ".",
    cage: Cage = Cage.WORK,
    within: timedelta = SOON,
) -> CommandResult:
    program, *arguments = words
    return await (sign_ins or owner.sign_ins()).run(
        program, arguments, folder=owner.folder, below=below, within=within, cage=cage
    )


@requirement("B-signed-in")
async def test_a_program_uses_its_own_sign_in_in_the_folder_of_the_agent(
    owner: SignedInOwner, temporary: Path
) -> None:
    (owner.folder / "below").mkdir()

    ran = await use(owner, "gh", "api", "a b", "$HOME", below="below")

    place = owner.folder / "below"
    text = f"signed in as octocat at github.com in {place} ['api', 'a b', '$HOME']\n"
    assert (ran.output, ran.code) == (text, 0)
    assert names_in(temporary) == []


async def test_kubectl_uses_the_current_context_of_its_own_settings(owner: SignedInOwner) -> None:
    ran = await use(owner, "kubectl", "get", "pods")

    assert ran.output == "kubectl ['get', 'pods'] kind-one (False, True)\n"


@pytest.mark.parametrize("below", ["..", "missing", "link", "/"])
async def test_a_folder_outside_is_refused(owner: SignedInOwner, below: str) -> None:
    (owner.folder / "link").symlink_to(owner.home)

    with pytest.raises(BadRequest, match="There is no folder"):
        await use(owner, "gh", "api", "x", below=below)


async def test_a_rewritten_copy_does_not_change_the_sign_in_of_the_owner(
    owner: SignedInOwner,
) -> None:
    hosts = owner.home / ".config/gh/hosts.yml"
    before = hosts.read_bytes()

    assert (await use(owner, "gh", "api", "rewrite")).code == 0
    assert hosts.read_bytes() == before
    assert (await use(owner, "gh", "api", "x")).code == 0


@requirement("B-signed-in")
async def test_a_program_that_prints_its_sign_in_shows_nothing_of_it(owner: SignedInOwner) -> None:
    ran = await use(owner, "gh", "api", "leak")

    assert ran.output == f"the token is {REDACTED}\n"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 200])
def test_no_part_of_a_secret_is_left_where_an_output_was_cut(size: int) -> None:
    secrets = ("secret", "secret-and-more")
    text = b"secretsecret-and-more" * 5 + b"sec"
    for limit in range(4, 150):
        excerpt = Excerpt(limit, secrets)
        for start in range(0, len(text), size):
            excerpt.add(text[start : start + size])

        shown = excerpt.text()
        assert "cret" not in shown
        assert "and-" not in shown
        assert excerpt.text() == shown
    assert excerpt.size == len(text)
    whole = Excerpt(1000, secrets)
    whole.add(text)
    assert whole.text() == REDACTED * 10 + "sec"


@requirement("B-signed-in")
async def test_a_program_with_a_sign_in_starts_no_other(owner: SignedInOwner) -> None:
    planted = owner.folder / "planted"
    planted.write_text("#!/bin/sh\necho started\n")
    planted.chmod(0o755)

    for program in ("/bin/sh", "/bin/cat", str(planted)):
        ran = await use(owner, "gh", "api", "start", program)
        # 1 is EPERM of the filter, 13 EACCES of the list of programs.
        assert ran.output.split() == "fork failed 1 spawn failed 1 exec failed 13".split()


async def test_a_program_reads_nothing_else_of_its_owner_or_about_processes(
    owner: SignedInOwner,
) -> None:
    owner.write(".ssh/id_ed25519", "other secret")
    hidden = (
        owner.home / ".ssh/id_ed25519",
        owner.home / ".config/gh/hosts.yml",
        "/proc/self/environ",
        "/proc/self/cmdline",
        "/proc/1/cmdline",
    )

    for path in hidden:
        assert (await use(owner, "gh", "api", "read", str(path))).output == "read failed 13\n", path


async def test_a_program_gets_no_variable_of_the_server(owner: SignedInOwner) -> None:
    variables = {"AWS_SECRET_ACCESS_KEY": "x", "EDITOR": "vi", "GH_DEBUG": "api"}
    sign_ins = owner.sign_ins(**variables)

    ran = await use(owner, "gh", "api", "environment", sign_ins=sign_ins)

    names = set(ran.output.split())
    assert {"GH_CONFIG_DIR", "GH_PROMPT_DISABLED", "HOME"} <= names
    assert not names & {"AWS_SECRET_ACCESS_KEY", "EDITOR", "GH_DEBUG"}


@pytest.mark.parametrize(("cage", "outcome"), [(Cage.WORK, "worked"), (Cage.LOOK, "failed")])
async def test_an_agent_that_only_reads_has_its_folder_to_read(
    owner: SignedInOwner, cage: Cage, outcome: str
) -> None:
    path = str(owner.folder / "new")

    assert f"write {outcome}" in (await use(owner, "gh", "api", "write", path, cage=cage)).output


async def test_a_program_ends_after_its_timeout(owner: SignedInOwner, temporary: Path) -> None:
    ran = await use(owner, "gh", "api", "wait", within=timedelta(seconds=0.5))

    assert ran.timed_out
    assert names_in(temporary) == []


@requirement("B-signed-in")
@pytest.mark.parametrize("confined", [True, False])
@pytest.mark.parametrize("place", ["file", "variable"])
async def test_other_commands_find_no_sign_in_while_it_is_used(
    tmp_path: Path, place: str, *, confined: bool
) -> None:
    token = canary("gh")
    owner = SignedInOwner(tmp_path, token=token if place == "file" else "")
    variables = {} if place == "file" else {"GH_TOKEN": token}
    loose = {"data": tmp_path, "loose": "/nonexistent", "worker": "self"}
    write_scan(owner.folder / "scan.sh", {"home": owner.home / ".config/gh", **loose})
    private = f"cat {shlex.quote(tempfile.gettempdir())}/*/home/.config/gh/*"
    line = f"bash scan.sh; {private} 2>/dev/null"
    signed_in = asyncio.create_task(
        use(owner, "gh", "api", "wait", sign_ins=owner.sign_ins(**variables))
    )
    await asyncio.to_thread((owner.folder / ".waiting").read_text)

    ran = await ConfinedShell(unconfined=not confined).run(
        line,
        folder=owner.folder,
        within=SOON,
        bounds=CommandBounds(cage=Cage.WORK, network=True),
    )
    await asyncio.to_thread((owner.folder / ".go").write_text, "")
    await signed_in

    assert found_in(ran.output.encode()) == (set() if confined else {token})


@requirement("B-signed-in")
@pytest.mark.parametrize("way", ["file", "link", "linked folder", "link on the way"])
async def test_a_program_that_the_agent_could_write_is_refused(
    owner: SignedInOwner, way: str
) -> None:
    script = (owner.programs / "gh").rename(owner.root / "gh")
    planted = owner.folder / "gh"
    match way:
        case "file":
            shutil.copy(script, planted)
            sign_ins = owner.sign_ins(PATH=str(owner.folder))
        case "link":
            shutil.copy(script, planted)
            (owner.programs / "gh").symlink_to(planted)
            sign_ins = owner.sign_ins()
        case "linked folder":
            shutil.copy(script, planted)
            (owner.root / "bin").symlink_to(owner.folder)
            sign_ins = owner.sign_ins(PATH=str(owner.root / "bin"))
        case _:
            # The link in the agent's folder leads to the real one, today.
            planted.symlink_to(script)
            (owner.programs / "gh").symlink_to(planted)
            sign_ins = owner.sign_ins()

    with pytest.raises(ProcessFailed, match="agents can write"):
        await use(owner, "gh", "api", "x", sign_ins=sign_ins)


async def test_a_program_that_everybody_can_write_is_refused(owner: SignedInOwner) -> None:
    owner.programs.chmod(0o777)

    with pytest.raises(ProcessFailed, match="everybody can write"):
        await use(owner, "gh", "api", "x")

    owner.programs.chmod(0o777 | stat.S_ISVTX)
    assert (await use(owner, "gh", "api", "x")).code == 0


@pytest.mark.parametrize(
    "first", ["#!/bin/sh", "#!/usr/bin/env bash", "#!", f"#!{PYTHON} -c", "#!python3"]
)
async def test_a_script_of_another_program_is_refused(owner: SignedInOwner, first: str) -> None:
    owner.install("gh", f"{first}\necho started\n")

    with pytest.raises(ProcessFailed, match="cannot be held"):
        await use(owner, "gh", "api", "x")


async def test_a_script_may_name_its_interpreter_by_env(owner: SignedInOwner) -> None:
    (owner.programs / "python3").symlink_to(PYTHON)
    owner.install("kubectl", "#!/usr/bin/env python3\nprint('started')\n")
    assert (await use(owner, "kubectl", "get")).output == "started\n"

    owner.install("kubectl", f"#!{PYTHON} -Is\nprint('started')\n")
    assert (await use(owner, "kubectl", "get")).output == "started\n"


async def test_an_interpreter_outside_system_folders_is_refused(owner: SignedInOwner) -> None:
    shutil.copy(PYTHON.resolve(), owner.root / "python3")
    owner.install("gh", f"#!{owner.root}/python3\n")

    with pytest.raises(ProcessFailed, match="in no system folder"):
        await use(owner, "gh", "api", "x")


@requirement("B-signed-in")
async def test_a_sign_in_that_commands_could_read_is_refused(owner: SignedInOwner) -> None:
    with pytest.raises(ProcessFailed, match="commands of agents can read"):
        await use(owner, "gh", "api", "x", sign_ins=owner.sign_ins(owner.home))

    shutil.move(owner.home / ".config", owner.folder / ".config")
    (owner.home / ".config").symlink_to(owner.folder / ".config")
    with pytest.raises(ProcessFailed, match="commands of agents can read"):
        await use(owner, "gh", "api", "x")
