"""What a test wrote is reported only if it failed: to carry it between processes costs time."""

from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.passed:
        report.sections = []
    return report
