"""A process that claims turns on a PostgreSQL that others share.

It does what it reads from stdin, a line at a time, and answers each with a line of JSON.
"""

import json
import sys
from contextlib import suppress
from datetime import timedelta

from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from backburner.core import transitions
from backburner.core.errors import Fenced
from backburner.core.outcome import Complete
from backburner.core.run import RunEnding, RunStatus
from backburner.ports import Claim, Claimer, RescuedTurn
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.store.tx import Tx
from support.doubles.clock import SetClock

#: As many runs of a user's as there are rows.
CAP = 1_000_000


class Racer:
    def __init__(self, url: str, lease: timedelta) -> None:
        self._database = Database(make_engine(url), SetClock())
        self._lease = lease
        self._held: Claim | None = None

    def connect(self) -> None:
        """Be ready, so that all start from the same line."""
        self._database.run(lambda tx: tx.connection.execute(text("SELECT 1")))

    def claim_all(self) -> int:
        """Claim as long as there is anything, and count."""
        count = 0
        while True:
            # Somebody may hold a lock for longer than one waits for it.
            with suppress(OperationalError):
                if self._database.run(self._claim) is None:
                    return count
                count += 1

    def claim(self) -> int | None:
        """Take a turn and keep it; answers with its epoch."""
        self._held = self._database.run(self._claim)
        return self._held.turn.epoch if self._held else None

    def take_over(self) -> int | None:
        """Wait until a turn can be freed, and take it."""
        while self._database.run(_rescue) is None:
            pass
        return self.claim()

    def renew(self) -> str:
        assert self._held
        turn = self._held.turn
        found = self._database.run(lambda tx: tx.turns.renew([turn], lease=self._lease))
        return "renewed" if turn.run_id in found else "fenced"

    def commit(self) -> str:
        """Commit without a look at what has become of the turn."""
        assert self._held
        held = self._held

        def commit(tx: Tx) -> None:
            outcome = Complete(message=f"Done under epoch {held.turn.epoch}.")
            step = transitions.finish(held.conversation, held.run, outcome, now=tx.now)
            ending = RunEnding(status=RunStatus.SUCCESS)
            tx.turns.commit(held.turn, step, ending)

        try:
            self._database.commit_here(held.turn, commit)
        except Fenced:
            return "fenced"
        return "committed"

    def _claim(self, tx: Tx) -> Claim | None:
        claimer = Claimer(worker="racer", lease=self._lease, per_user_limit=CAP)
        return tx.queue.claim_work(claimer)


def _rescue(tx: Tx) -> RescuedTurn | None:
    return tx.queue.rescue()


def main() -> None:
    url, seconds = sys.argv[1:]
    racer = Racer(url, timedelta(seconds=float(seconds)))
    for line in sys.stdin:
        print(json.dumps(getattr(racer, line.strip())()), flush=True)  # noqa: T201 (its answer)


if __name__ == "__main__":
    main()
