"""A model's provider that has trouble, and time that passes meanwhile."""

from datetime import timedelta

from backburner.core.errors import ModelAccessDenied, ModelUnavailable
from backburner.core.retry import Outage
from backburner.ports import TurnRequest
from support.doubles.clock import SetClock
from support.doubles.engine import End, Fail
from support.stage.stage import Stage

DOWN = Fail(ModelUnavailable("The model is overloaded."))
DENIED = Fail(ModelAccessDenied("The key was refused.", hint="Enter another.", permanent=True))
BACK = "The model is available again. Background work that waited for it continues."


class Provider:
    """Of a model that fails until it is repaired."""

    def __init__(self, trouble: Fail = DOWN) -> None:
        self.trouble: Fail | None = trouble

    def __call__(self, _request: TurnRequest) -> list[Fail | End]:
        return [self.trouble or End({"complete": True, "message": "Done."})]


def outages(stage: Stage) -> list[Outage]:
    return list(stage.database.run(lambda tx: tx.outages.all()))


async def pass_time(stage: Stage, clock: SetClock, length: timedelta, step: timedelta) -> None:
    """Let a worker work and report while time passes."""
    until = clock.now + length
    while clock.now < until:
        clock.advance(step)
        await stage.work()
        await stage.outage_reporter.run_once()
