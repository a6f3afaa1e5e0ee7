"""The demo engine keeps the engine contract, as far as it needs no model and no memory."""

from datetime import timedelta

import pytest
from support.contracts.engine import OF_ANY_ENGINE, Promise
from support.contracts.engine.harness import STALL_LIMIT

from backburner.engine.demo import DemoEngine


class Demo:
    def engine(self, *, stall: timedelta = STALL_LIMIT) -> DemoEngine:
        del stall
        return DemoEngine("backburner")


@pytest.mark.parametrize("promise", OF_ANY_ENGINE.values(), ids=OF_ANY_ENGINE)
async def test_the_demo_engine_promises_that(promise: Promise) -> None:
    await promise(Demo())
