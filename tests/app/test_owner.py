"""Who may connect from elsewhere."""

from types import SimpleNamespace
from typing import Any

import pytest
from support.people import people
from support.stage.stage import Stage
from support.stage.stages import clock, database, set_up, stage

from backburner.app.owner import check_open
from backburner.core.errors import BadSetting
from backburner.settings import load

__all__ = ["clock", "database", "set_up", "stage"]


def app(stage: Stage, host: str) -> Any:
    """Give as much of the program as there is a look at."""
    settings = load(host=host, public_url="https://b.example")
    return SimpleNamespace(settings=settings, deps=stage.deps)


async def test_other_machines_connect_once_somebody_has_a_password(stage: Stage) -> None:
    everywhere = "0.0.0.0"  # noqa: S104 (not to listen on)
    await people.owner(stage)
    await check_open(app(stage, "127.0.0.1"))
    with pytest.raises(BadSetting):
        await check_open(app(stage, everywhere))

    await people.add(stage)
    await check_open(app(stage, everywhere))
