"""Fixtures for tests of the command line: call it in this process, and a server to talk to."""

import signal
from collections.abc import Callable, Iterator

import pytest
from support.programs.cli_server import ask, running, server, talk
from support.programs.programs import Ended

from backburner.cli.main import main

__all__ = ["ask", "running", "server", "talk"]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Ended]]:
    """Call the command in this process, for everything that ends by itself."""

    def call(*arguments: str) -> Ended:
        # Not what was written before.
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        captured = capsys.readouterr()
        # None stands for 0.
        code = ended.value.code or 0
        assert isinstance(code, int)
        return Ended(code, captured.out.splitlines(), captured.err.splitlines())

    before = signal.getsignal(signal.SIGTERM)
    yield call
    signal.signal(signal.SIGTERM, before)
