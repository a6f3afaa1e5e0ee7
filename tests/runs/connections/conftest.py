"""Stages whose connections have servers that do what they are told."""

from collections.abc import Callable

import pytest
from support.doubles.tool_servers import FakeServers
from support.stage.stage import Stage

from backburner.tools.toolbox import Toolbox


@pytest.fixture
def servers() -> FakeServers:
    return FakeServers()


@pytest.fixture
def connected(set_up: Callable[..., Stage], servers: FakeServers) -> Stage:
    return set_up(toolbox=lambda deps: Toolbox(deps, open_session=servers.open_session))
