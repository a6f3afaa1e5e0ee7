"""Fixtures for tests of the command line: call it in this process, and a server to talk to."""

import signal
from collections.abc import Callable, Iterator

import pytest
from support.programs.cli_server import Running, ask, serving, talk
from support.programs.programs import Ended

from backburner.cli.main import main
from backburner.core import transitions
from backburner.core.ids import UserId, new_conversation_id
from backburner.core.schedule import Cron
from backburner.core.transitions import Brief
from backburner.store.tx import Tx

__all__ = ["ask", "talk"]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Ended]]:
    """Call the command in this process, for everything that ends by itself."""

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


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Start `backburner up` with the demo agent, once for all tests of this process.

    Each test creates conversations of its own. Two tasks, `good` and `bad`, are proposed.
    """
    with serving(tmp_path_factory.mktemp("data"), _propose_tasks) as running:
        yield running


def _propose_tasks(tx: Tx, user: UserId) -> None:
    for name in ("good", "bad"):
        schedule = Cron("33 3 * * 1", "UTC")
        brief = Brief(title=name, prompt=f"Do {name}.", schedule=schedule)
        step = transitions.propose(new_conversation_id(), user, brief, why="It helps.", now=tx.now)
        tx.conversations.add(step)
