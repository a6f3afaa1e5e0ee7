"""The engine that tests are written with keeps what any engine promises."""

import pytest

from backburner.testing.engine import ScriptedEngine
from backburner.testing.engine_contract import OF_ANY_ENGINE, Promise
from backburner.testing.engine_contract.trial import Shared


@pytest.mark.parametrize("promise", OF_ANY_ENGINE.values(), ids=OF_ANY_ENGINE)
async def test_the_scripted_engine_promises_that(promise: Promise) -> None:
    await promise(Shared(ScriptedEngine()))
