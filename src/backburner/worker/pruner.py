"""Deletes the records of runs that ended long ago, and answers that nobody will ask for again."""

from dataclasses import dataclass
from datetime import timedelta

from backburner.actions import repeats
from backburner.actions.deps import Deps

#: In one transaction.
_SOME = 200


@dataclass(slots=True)
class Pruner:
    deps: Deps
    keep: timedelta

    async def run_once(self) -> bool:
        deleted = await self.deps.store.transact(
            lambda tx: tx.prune(before=tx.now - self.keep, most=_SOME)
        )
        more_answers = await repeats.prune(self.deps)
        return deleted == _SOME or more_answers
