"""The coverage of `backburner.core`, measured only while a plain test of `tests/core` runs.

Tracing makes code up to twice as slow, so it is off for everything else: other folders, imports of
test files, and properties, which would hide that a line has no plain test. The root conftest
imports this before anything of Backburner, so that lines which run at import are measured too.
"""

import importlib
import pkgutil
from collections.abc import Generator
from pathlib import Path

import pytest
from coverage import Coverage

import backburner.core

MEASURED = Path(__file__).parents[1] / "core"
MEASUREMENT = pytest.StashKey[Coverage]()

for _module in pkgutil.walk_packages(backburner.core.__path__, "backburner.core."):
    importlib.import_module(_module.name)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Stop what pytest-cov has started: in a process of xdist twice, and the last one counts."""
    while (running := Coverage.current()) is not None:
        running.stop()
        session.config.stash.setdefault(MEASUREMENT, running)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    measurement = item.config.stash.get(MEASUREMENT, None)
    if measurement is None or not _is_measured(item):
        return (yield)
    measurement.start()
    try:
        return (yield)
    finally:
        measurement.stop()


def _is_measured(item: pytest.Item) -> bool:
    is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    is_slow = item.get_closest_marker("unmeasured") is not None
    return MEASURED in item.path.parents and not is_property and not is_slow
