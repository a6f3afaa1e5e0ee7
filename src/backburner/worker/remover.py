"""Removes the conversations whose deletion cannot be undone any more."""

from dataclasses import dataclass

from backburner.actions.deps import Deps
from backburner.actions.work import deletion


@dataclass(slots=True)
class Remover:
    deps: Deps

    async def run_once(self) -> bool:
        return await deletion.remove_due(self.deps)
