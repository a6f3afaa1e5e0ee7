"""The real git with a stored password: it works, and no repository gets at the password."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.programs.families import SOON
from support.programs.signed_in import SignedInOwner
from support.requirements import requirement
from support.servers.git_server import GitServer, serve_git

from backburner.core.commands import Cage
from backburner.core.errors import ProcessFailed
from backburner.ports import CommandResult

GIT = shutil.which("git") or "git"
USER, PASSWORD = "octo@cat", "git-pass:word"
#: As git stores it.
STORED = "octo%40cat:git-pass%3aword"


def git(folder: Path, *arguments: str) -> str:
    ran = subprocess.run(
        [GIT, *arguments],
        cwd=folder,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent"},
        capture_output=True,
        check=True,
        text=True,
    )
    return ran.stdout


@pytest.fixture
def owner(tmp_path: Path) -> SignedInOwner:
    owner = SignedInOwner(tmp_path)
    owner.write(".gitconfig", "[user]\n\tname = Octo Cat\n\temail = octo@cat.example\n")
    return owner


@pytest.fixture
def server(owner: SignedInOwner) -> Iterator[GitServer]:
    folder = owner.root / "repositories"
    folder.mkdir()
    git(folder, "init", "-q", "--bare", "-b", "main", "project.git")
    git(folder / "project.git", "config", "http.receivepack", "true")
    with serve_git(folder, USER, PASSWORD) as server:
        owner.write(".git-credentials", f"http://{STORED}@{server.host}\n")
        yield server


@pytest.fixture
def clone(owner: SignedInOwner, server: GitServer) -> Path:
    """Return a repository of the agent, with a commit that was not pushed."""
    folder = owner.folder / "project"
    git(owner.folder, "init", "-q", "-b", "main", "project")
    git(folder, "remote", "add", "origin", f"{server.address}/project.git")
    git(folder, "config", "user.name", "Agent")
    git(folder, "config", "user.email", "agent@localhost")
    git(folder, "commit", "-q", "--allow-empty", "-m", "One")
    return folder


async def use(
    owner: SignedInOwner, *arguments: str, below: str = "project", cage: Cage = Cage.WORK
) -> CommandResult:
    return await owner.sign_ins().run(
        "git", arguments, folder=owner.folder, below=below, within=SOON, cage=cage
    )


@requirement("B-signed-in")
async def test_git_pushes_fetches_and_clones_with_the_stored_password(
    owner: SignedInOwner, server: GitServer, clone: Path
) -> None:
    pushed = await use(owner, "push", "origin", "main")
    assert pushed.code == 0, pushed.output
    assert git(server.folder / "project.git", "log", "--format=%s", "main") == "One\n"

    address = f"{server.address}/project.git"
    cloned = await use(owner, "clone", "-q", address, "again", below=".")
    assert (cloned.code, cloned.output) == (0, "")
    git(owner.folder / "again", "log", "--format=%s")
    git(clone, "commit", "-q", "--allow-empty", "-m", "Two")
    assert (await use(owner, "push", "origin", "main")).code == 0
    pulled = await use(owner, "pull", "origin", "main", below="again")
    assert pulled.code == 0, pulled.output
    assert git(owner.folder / "again", "log", "--format=%s") == "Two\nOne\n"

    listed = await use(owner, "ls-remote", "origin", cage=Cage.LOOK)
    assert "refs/heads/main" in listed.output
    assert PASSWORD not in (clone / ".git/config").read_text()


async def test_the_account_is_named_by_the_stored_user(
    owner: SignedInOwner, server: GitServer
) -> None:
    assert owner.sign_ins().describe("git") == f"{USER} at {server.host}"


@requirement("B-signed-in")
async def test_another_server_gets_no_password(
    owner: SignedInOwner, server: GitServer, clone: Path
) -> None:
    with serve_git(server.folder, "other", "other") as other:
        git(clone, "remote", "add", "other", f"{other.address}/project.git")
        ran = await use(owner, "fetch", "other")

        assert ran.code != 0
        assert set(other.authorizations) == {""}


@requirement("B-signed-in")
async def test_a_redirect_does_not_take_the_password_along(
    owner: SignedInOwner, server: GitServer, clone: Path
) -> None:
    with (
        serve_git(server.folder, "other", "other") as other,
        serve_git(server.folder, USER, PASSWORD, redirect=other.address) as redirecting,
    ):
        owner.write(".git-credentials", f"http://{STORED}@{redirecting.host}\n")
        git(clone, "remote", "set-url", "origin", f"{redirecting.address}/project.git")
        ran = await use(owner, "fetch", "origin")

        assert ran.code != 0
        assert redirecting.authorizations
        assert not other.authorizations


@requirement("B-signed-in")
async def test_hooks_and_filters_of_a_repository_do_not_run(
    owner: SignedInOwner, server: GitServer, clone: Path
) -> None:
    assert server.address
    for name in ("pre-push", "post-merge", "reference-transaction", "post-checkout"):
        hook = clone / ".git/hooks" / name
        hook.write_text("#!/bin/sh\ntouch started\nexit 1\n")
        hook.chmod(0o755)

    assert (await use(owner, "push", "origin", "main")).code == 0
    assert (await use(owner, "fetch", "origin")).code == 0
    assert not list(owner.folder.rglob("started"))


@requirement("B-signed-in")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alias.fetch", "!touch started"),
        ("core.fsmonitor", "touch started"),
        ("core.gitProxy", "touch started"),
        ("core.hooksPath", "."),
        ("core.sshCommand", "touch started"),
        ("credential.helper", "!touch started"),
        ("fetch.negotiationAlgorithm", "noop"),
        ("filter.x.smudge", "touch started"),
        ("http.curloptResolve", "127.0.0.1:80:127.0.0.2"),
        ("http.extraHeader", "X: y"),
        ("http.http://127.0.0.1/.proxy", "http://127.0.0.1:1"),
        ("http.https://example.org/.sslVerify", "false"),
        ("http.proxy", "http://127.0.0.1:1"),
        ("http.sslCAInfo", "ca.pem"),
        ("include.path", "other"),
        ("protocol.ext.allow", "always"),
        ("remote.origin.proxy", "http://127.0.0.1:1"),
        ("remote.origin.uploadpack", "touch started"),
        ("remote.origin.vcs", "ext"),
        ("url.http://127.0.0.1:1/.insteadOf", "http://127.0.0.1"),
    ],
)
async def test_a_repository_with_a_setting_that_is_not_plain_is_refused(
    owner: SignedInOwner, server: GitServer, clone: Path, name: str, value: str
) -> None:
    git(clone, "config", name, value)

    with pytest.raises(ProcessFailed, match="could send the sign-in elsewhere"):
        await use(owner, "fetch", "origin")

    assert not server.authorizations
    assert not list(owner.folder.rglob("started"))


async def test_a_repository_above_the_folder_of_the_agent_is_not_used(
    owner: SignedInOwner, server: GitServer
) -> None:
    git(owner.root, "init", "-q")
    git(owner.root, "remote", "add", "origin", f"{server.address}/project.git")

    ran = await use(owner, "fetch", "origin", below=".")

    assert ran.code != 0
    assert not server.authorizations


@pytest.mark.parametrize(
    "address", ["ext::sh -c 'touch started'", "ssh://git@127.0.0.1/x", "git@127.0.0.1:x", "../x"]
)
async def test_only_http_is_spoken(owner: SignedInOwner, server: GitServer, address: str) -> None:
    assert server.address

    ran = await use(owner, "ls-remote", address, below=".")

    assert "not allowed" in ran.output
    assert not list(owner.folder.rglob("started"))
