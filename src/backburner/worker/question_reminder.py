"""Sends reminders of open questions, and expires those that are overdue."""

from dataclasses import dataclass

from backburner.actions import questions
from backburner.actions.deps import Deps


@dataclass(slots=True)
class Reminder:
    deps: Deps

    async def run_once(self) -> bool:
        return await questions.remind(self.deps) > 0
