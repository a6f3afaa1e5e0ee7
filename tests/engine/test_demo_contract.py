"""The demo keeps what every engine promises, as far as it has neither a model nor a memory."""

from datetime import timedelta

import pytest
from support.contracts.engine import OF_ANY_ENGINE, Promise
from support.contracts.engine.trial import PATIENCE

from backburner.engine.demo import DemoEngine


class Demo:
    def engine(self, *, stall: timedelta = PATIENCE) -> DemoEngine:
        del stall
        return DemoEngine()


@pytest.mark.parametrize("promise", OF_ANY_ENGINE.values(), ids=OF_ANY_ENGINE)
async def test_it_promises_that(promise: Promise) -> None:
    await promise(Demo())
