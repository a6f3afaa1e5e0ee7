"""What operators do to the work of everybody, on the pages of all."""

from support.stage.api_stage import AskAs
from support.stage.make import MATE, USER

from backburner.core.accounts import Role


async def test_a_pause_of_everybody_is_not_resumed_by_one_of_them(ask_as: AskAs) -> None:
    operator = await ask_as(USER, role=Role.OPERATOR)
    mate = await ask_as(MATE)
    await mate.do("PUT", "/api/me", {"paused": True})
    own = (await mate("GET", "/page/who")).text
    await operator.do("POST", "/api/pause-all")
    others = (await mate("GET", "/page/who")).text
    overview = (await operator("GET", "/page/operate")).text

    assert "Everything is paused." in own
    assert "PUT /api/me" in own
    assert "An operator has paused all work." in others
    assert "PUT /api/me" not in others
    assert "Everything works." not in overview
    assert "The background work of everybody is paused." in overview
