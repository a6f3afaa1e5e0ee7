"""A git repository with a test, and the bare one that it pushes to."""

import subprocess
from pathlib import Path

TEST = "def test_{name}():\n    assert {claim}\n"


class Repository:
    def __init__(self, folder: Path) -> None:
        self.app, self.remote = folder / "app", folder / "remote.git"
        self.app.mkdir(parents=True)
        self._git("init", "--quiet", "--bare", "--initial-branch=main", str(self.remote))
        self._git("init", "--quiet", "--initial-branch=main")
        self._git("remote", "add", "origin", str(self.remote))
        self.write_test("app", "1 + 1 == 2")
        #: The first commit, as `push` returns it.
        self.first = self.push("Add a test")

    def write_test(self, name: str, claim: str) -> None:
        (self.app / f"test_{name}.py").write_text(TEST.format(name=name, claim=claim))

    def push(self, message: str) -> str:
        """Push all changes, and return the commit as `git log --oneline` begins it."""
        self._git("add", ".")
        self._git("commit", "--quiet", "--allow-empty", "-m", message)
        self._git("push", "--quiet", "origin", "main")
        return self._git("rev-parse", "--short", "HEAD").strip()

    def _git(self, *arguments: str) -> str:
        git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *arguments]
        done = subprocess.run(git, cwd=self.app, check=True, stdout=subprocess.PIPE, text=True)
        return done.stdout
