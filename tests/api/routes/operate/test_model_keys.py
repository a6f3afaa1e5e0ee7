"""`/api/models/key`: a user's own key, which nobody sees again."""

import pytest
from support.stage.api_stage import AskAs
from support.stage.make import MATE, USER
from support.stage.stage import Stage

from backburner.actions.models.own_keys import find_key
from backburner.core.routing import Routes

KEY = "sk-own-canary-8f1c"
NAMES = ("claude", "claude/2", "demo")


@pytest.fixture(autouse=True)
def _models(stage: Stage) -> None:
    stage.deps.routes = Routes(names=NAMES, chat="claude")
    stage.deps.injection_proof = frozenset({"demo"})
    stage.deps.own_model_keys = True


async def test_a_user_stores_and_removes_a_key(ask_as: AskAs, stage: Stage) -> None:
    user, mate = await ask_as(USER), await ask_as(MATE)
    for profile in ("claude", "claude/2"):
        stored = await user("PUT", "/api/models/key", {"profile": profile, "key": f" {KEY} "})
        assert (stored.status_code, stored.content) == (204, b"")

    listed = await user.get("/api/models")
    assert [model["own_key"] for model in listed["items"]] == [True, True, False]
    assert KEY not in str(listed)
    others = await mate.get("/api/models")
    assert [model["own_key"] for model in others["items"]] == [False] * 3
    assert await find_key(stage.deps, USER, "claude") == KEY
    assert await find_key(stage.deps, MATE, "claude") is None

    assert (await mate("DELETE", "/api/models/key?profile=claude")).status_code == 404
    assert (await user("DELETE", "/api/models/key?profile=claude")).status_code == 204
    assert (await user("DELETE", "/api/models/key?profile=claude")).status_code == 404
    assert await find_key(stage.deps, USER, "claude") is None
    assert await find_key(stage.deps, USER, "claude/2") == KEY


@pytest.mark.parametrize("key", ["", "  ", "two words", "schlüssel", "a\nb", "k" * 1001])
async def test_what_is_no_key_is_refused_and_not_quoted(ask_as: AskAs, key: str) -> None:
    refused = await (await ask_as(USER))(
        "PUT", "/api/models/key", {"profile": "claude", "key": key}
    )

    assert refused.status_code in (400, 422)
    assert not key.strip() or key not in refused.text


@pytest.mark.parametrize("profile", ["demo", "elsewhere"])
async def test_a_model_that_takes_no_key_is_not_found(ask_as: AskAs, profile: str) -> None:
    refused = await (await ask_as(USER))("PUT", "/api/models/key", {"profile": profile, "key": KEY})

    assert refused.status_code == 404


async def test_keys_are_refused_unless_the_operator_allows_them(
    ask_as: AskAs, stage: Stage
) -> None:
    stage.deps.own_model_keys = False
    user = await ask_as(USER)

    refused = await user("PUT", "/api/models/key", {"profile": "claude", "key": KEY})

    assert refused.status_code == 403
    assert "own_model_keys" in refused.json()["hint"]
    assert [model["own_key"] for model in (await user.get("/api/models"))["items"]] == [False] * 3
