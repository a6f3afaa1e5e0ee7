"""How tests are spread over processes.

The tests of a file stay in one process, which is what xdist calls `loadfile`. Tests that mostly
wait, for leases, intervals and programs, go one by one to whichever process is free, all along
those that compute: so the machine is never idle, and never all at once does what takes long.
"""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

#: Folders whose tests wait, and how long each of them takes, roughly, in seconds.
WAITING = {"end_to_end": 8.0, "worker": 3.0, "cli": 1.0, "engine": 1.0}
#: Files that are too long for one process.
LONG = ("store/test_migrations.py", "store/test_simulator.py", "store/test_starting.py")
#: Files whose tests share a server.
SHARING = ("cli/commands/test_accounts.py", "end_to_end/test_clients.py")
#: Folders with many short tests, so that all processes end at the same time.
LAST = ("process", "gateway", "settings", "support", "core")
#: Where the last test that waits begins, of everything else.
WAITED = 0.8


class Spread(LoadFileScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        path = PurePath(nodeid.partition("::")[0])
        is_alone = _folder(path) in WAITING or str(path).endswith(LONG)
        return nodeid if is_alone and not str(path).endswith(SHARING) else str(path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Spread | None:
    if config.getvalue("dist") != "loadfile":
        return None
    # They are in order already.
    config.option.loadscopereorder = False
    return Spread(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        folders = {item: _folder(PurePath(item.nodeid.partition("::")[0])) for item in items}
        waiting = {item: WAITING[folders[item]] for item in items if folders[item] in WAITING}
        others = [item for item in items if item not in waiting]
        others.sort(key=lambda item: LAST.index(folders[item]) if folders[item] in LAST else -1)
        places = dict(_places(waiting, until=WAITED)) | dict(_places(dict.fromkeys(others, 1.0)))
        items.sort(key=places.__getitem__)


def _folder(path: PurePath) -> str:
    """Give the folder of `tests` that a test is in."""
    return path.parts[1] if len(path.parts) > 2 else ""


def _places(
    weights: dict[pytest.Item, float], *, until: float = 1.0
) -> Iterator[tuple[pytest.Item, float]]:
    """Give each a place between 0 and `until`, the further apart the longer it takes."""
    place, total = 0.0, sum(weights.values())
    for item, weight in weights.items():
        yield item, place / total * until
        place += weight
