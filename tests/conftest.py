"""What every test gets: a hypothesis profile, and an environment without our settings in it."""

import os

import pytest
from coverage import Coverage
from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "soak",
    deadline=None,
    max_examples=5_000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("BACKBURNER_TEST_PROFILE", "default"))


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("BACKBURNER_") and not name.startswith("BACKBURNER_TEST_"):
            monkeypatch.delenv(name)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """End the measurement that pytest-cov begins too early in a worker, and then forgets.

    It begins another one right after this, and `no_cover` would only bring the first back.
    """
    forgotten = Coverage.current()
    if forgotten is not None and hasattr(session.config, "workerinput"):
        forgotten.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave what properties reach out of the coverage: each line has to have a plain test.

    Measuring them would also take four times as long.
    """
    for item in items:
        test = getattr(item, "obj", None)
        if getattr(test, "is_hypothesis_test", False):
            item.add_marker(pytest.mark.no_cover)
