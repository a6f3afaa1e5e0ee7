"""A page that follows no changes yet is told after which one it has to begin."""

from support.stage.api_stage import Asker
from support.stage.make import MATE
from support.stage.stage import Stage

from backburner.web.page_routes import FIRST_HEADER
from backburner.web.rendering import CHANGE_HEADER

FIRST = {FIRST_HEADER: "1"}


async def test_a_first_fragment_has_the_number_of_the_callers_newest_change(
    ask: Asker, mate: Asker, stage: Stage
) -> None:
    await stage.chat()
    own = await ask("GET", "/page/sidebar", headers=FIRST)
    for _ in range(3):
        await stage.chat(user=MATE)
    after = await ask("GET", "/page/new", headers=FIRST)
    theirs = await mate("GET", "/page/new", headers=FIRST)

    assert int(own.headers[CHANGE_HEADER]) > 0
    assert after.headers[CHANGE_HEADER] == own.headers[CHANGE_HEADER]
    assert int(theirs.headers[CHANGE_HEADER]) > int(own.headers[CHANGE_HEADER])
    assert CHANGE_HEADER not in (await ask("GET", "/page/sidebar")).headers
    refused = await ask.client.get("/page/sidebar", headers=FIRST)
    assert (refused.status_code, CHANGE_HEADER in refused.headers) == (401, False)
