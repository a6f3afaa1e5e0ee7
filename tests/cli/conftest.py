"""What tests of the command line get: a way to start it for real, and one to call it in process."""

import signal
from collections.abc import Callable, Iterator

import pytest
from support.programs.programs import Ended

from backburner.cli.main import main


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Ended]]:
    """Call the command in this process: for whatever ends before anything is started."""

    def call(*arguments: str) -> Ended:
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
