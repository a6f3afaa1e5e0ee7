"""Virtual environments beside that of the tests: of the other queues, and as users have it."""

import hashlib
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Environment:
    name: str
    lock: Path
    #: In words.
    contents: str
    has_backburner: bool = False

    @property
    def folder(self) -> Path:
        return ROOT / self.name

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def make(self) -> None:
        """Make it from its lock file, unless it is there."""
        made_from = [self.lock.read_bytes(), sys.version.encode(), str(self.folder).encode()]
        wanted = hashlib.sha256(b"".join(made_from)).hexdigest()
        stamp = self.folder / ".done"
        if stamp.exists() and stamp.read_text() == wanted:
            return
        print(f"Preparing {self.name}, with {self.contents}.", file=sys.stderr)
        if self.folder.exists():
            shutil.rmtree(self.folder)
        if any(subprocess.run(step, check=False).returncode for step in self._steps()):
            sys.exit(
                f"Preparing {self.name} failed; the reason stands above."
                " To measure the rest, name it with --only."
            )
        stamp.write_text(wanted)

    def _steps(self) -> list[list[str]]:
        uv = str(Path(sysconfig.get_path("scripts")) / "uv")
        install = [uv, "pip", "install", "--quiet", "--compile-bytecode"]
        install += ["--python", str(self.python)]
        steps = [
            [uv, "venv", "--quiet", "--python", sys.executable, str(self.folder)],
            [*install, "--require-hashes", "--requirements", str(self.lock)],
        ]
        if self.has_backburner:
            steps.append([*install, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)])
        return steps


PEERS = Environment(
    ".venv-bench", ROOT / "bench" / "peers.lock", contents="the queues to compare with"
)
#: Packages that only developers have are imported by some libraries, if they are there.
USER = Environment(
    ".venv-user",
    ROOT / "requirements.lock",
    contents="what users have",
    has_backburner=True,
)
