"""A folder that becomes a link to a secret one: itself, or a folder above it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from threading import Event, Thread
from typing import Any

SECRET = "secret-of-the-user"  # noqa: S105
#: In seconds. In none, most uses of the folder fail, and in some, most succeed.
PAUSES = (0, 0.003, 0.007)


@dataclass
class SwappedFolder:
    root: Path
    #: What becomes a link.
    above: bool
    before: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        # The second is where the path leads if the folder above becomes a link.
        for folder in (self.secret, self.secret / "app"):
            folder.mkdir(mode=0o700)
            for name in ("canary", ".envrc"):
                (folder / name).write_text(SECRET)
        self.before = self._read_secret()

    @property
    def folder(self) -> Path:
        return self.root / "code" / "app"

    @property
    def secret(self) -> Path:
        return self.root / "secret"

    @property
    def _link(self) -> Path:
        return self.folder.parent if self.above else self.folder

    @property
    def moved(self) -> Path:
        """Where the folder is while there is a link."""
        aside = self._link.with_name("aside")
        return aside / "app" if self.above else aside

    def swap(self) -> None:
        self._link.rename(self._link.with_name("aside"))
        self._link.symlink_to(self.secret)

    def swap_back(self) -> None:
        self._link.unlink()
        self._link.with_name("aside").rename(self._link)

    @contextmanager
    def swapping(self) -> Iterator[None]:
        """Swap and swap back, again and again."""
        ended = Event()

        def swap() -> None:
            for pause in cycle(PAUSES):
                self.swap()
                self.swap_back()
                if ended.wait(pause):
                    return

        thread = Thread(target=swap)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def check_untouched(self) -> None:
        assert self._read_secret() == self.before

    def _read_secret(self) -> dict[str, Any]:
        return {
            str(path): (path.stat().st_mode, path.read_text() if path.is_file() else "")
            for path in (self.secret, *sorted(self.secret.rglob("*")))
        }
