"""`/api/models`, `/api/pause-all` and `/api/resume-all`."""

import pytest
from support.requirements import requirement
from support.stage.api_stage import AskAs, Asker
from support.stage.make import MATE, USER
from support.stage.stage import Stage

from backburner.core.accounts import Role, Scope
from backburner.core.errors import Conflict
from backburner.core.routing import Routes

OPERATOR_ONLY = ("/api/models/reload", "/api/pause-all", "/api/resume-all")


async def test_models_are_listed_with_who_uses_them(ask: Asker, stage: Stage) -> None:
    stage.deps.routes = Routes(names=("claude", "local"), chat="claude", background="local")

    found = await ask.get("/api/models")

    assert found["items"] == [
        {"profile": "claude", "chats": True, "background": False, "own_key": False},
        {"profile": "local", "chats": False, "background": True, "own_key": False},
    ]


@requirement("Z-model-change")
async def test_an_operator_reloads_the_models(ask_as: AskAs, stage: Stage) -> None:
    async def reload() -> bool:
        stage.deps.routes = Routes(names=("local",), chat="local")
        return True

    stage.deps.reload_models = reload
    operator = await ask_as(USER, role=Role.OPERATOR)

    found = await operator.do("POST", "/api/models/reload")

    assert [model["profile"] for model in found["items"]] == ["local"]
    acts = await operator.get("/api/audit")
    assert acts["items"][0]["act"] == "models_reloaded"


async def test_a_reload_that_fails_says_why(ask_as: AskAs, stage: Stage) -> None:
    async def reload() -> bool:
        raise Conflict("The models were not changed: no.", hint="Mend it.")

    stage.deps.reload_models = reload
    operator = await ask_as(USER, role=Role.OPERATOR)

    refused = await operator("POST", "/api/models/reload")

    assert refused.status_code == 409
    assert refused.json()["detail"] == "The models were not changed: no."


@requirement("Z-everything-off")
async def test_an_operator_pauses_and_resumes_the_work_of_everyone(
    ask_as: AskAs, stage: Stage
) -> None:
    operator, mate = await ask_as(USER, role=Role.OPERATOR), await ask_as(MATE)
    task = await stage.task(user=MATE)
    await operator.do("POST", "/api/pause-all")
    assert (await mate.get("/api/me"))["all_paused"]
    await stage.work()
    assert not stage.history(task)

    await operator.do("POST", "/api/resume-all")
    await stage.work()

    assert not (await mate.get("/api/me"))["all_paused"]
    assert len(stage.history(task)) == 1
    acts = await operator.get("/api/audit")
    assert [entry["act"] for entry in acts["items"]] == ["everyone_resumed", "everyone_paused"]


@pytest.mark.parametrize("path", OPERATOR_ONLY)
async def test_members_and_tokens_without_the_scope_are_refused(ask_as: AskAs, path: str) -> None:
    member = await ask_as(USER)
    assert (await member("POST", path)).status_code == 403
    token = await ask_as(MATE, Scope.READ, Scope.WRITE, role=Role.OPERATOR)
    assert (await token("POST", path)).status_code == 403
