"""The engine that tests are written with keeps what any engine promises."""

import pytest

from support.contracts.engine import OF_ANY_ENGINE, Promise
from support.contracts.engine.harness import Shared
from support.doubles.engine import ScriptedEngine


@pytest.mark.parametrize("promise", OF_ANY_ENGINE.values(), ids=OF_ANY_ENGINE)
async def test_the_scripted_engine_promises_that(promise: Promise) -> None:
    await promise(Shared(ScriptedEngine()))
