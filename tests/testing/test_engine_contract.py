"""The engine that tests are written with keeps what any engine promises."""

import pytest

from backburner.testing.engine import ScriptedEngine

pytest.register_assert_rewrite("backburner.testing.engine_contract")

from backburner.testing.engine_contract import OF_ANY_ENGINE, Promise  # noqa: E402
from backburner.testing.engine_contract.trial import Shared  # noqa: E402


@pytest.mark.parametrize("promise", OF_ANY_ENGINE.values(), ids=OF_ANY_ENGINE)
async def test_the_scripted_engine_promises_that(promise: Promise) -> None:
    await promise(Shared(ScriptedEngine()))
