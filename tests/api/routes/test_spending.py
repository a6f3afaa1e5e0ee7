"""What may be spent: on a conversation by its user, and at most by an operator."""

from collections.abc import Callable
from typing import Any

import pytest
from support.doubles.engine import Spend
from support.requirements import requirement
from support.stage.api_stage import AskAs, Asker
from support.stage.make import MATE, USER
from support.stage.stage import Stage

from backburner.actions.origin import Origin
from backburner.actions.work import jobs
from backburner.core.accounts import Role, Scope
from backburner.core.allowance import Allowance, AllowanceScope
from backburner.core.run import RunStatus


@pytest.fixture
def stage(set_up: Callable[..., Stage]) -> Stage:
    return set_up(
        allowances=(
            Allowance(AllowanceScope.DAY, tokens=1000),
            Allowance(AllowanceScope.USER),
            Allowance(AllowanceScope.CONVERSATION, tokens=100),
        )
    )


async def limit_of(ask: Asker, scope: str, **query: str) -> dict[str, Any]:
    shown = await ask.get("/api/spend", **query)
    found: dict[str, Any] = next(one for one in shown["allowances"] if one["scope"] == scope)
    return found


@requirement("Z-allowance")
async def test_the_allowance_of_a_conversation_is_set_and_its_work_goes_on(
    ask: Asker, stage: Stage
) -> None:
    stage.engine.then(Spend(120))
    task, other = await stage.task(), await stage.chat()
    await stage.work()
    assert stage.question(task).binds_to["scope"] == "conversation"
    path = f"/api/conversations/{task.id}/allowance"

    changed = await ask.do("PUT", path, {"limit": "500 tokens"})

    assert changed["conversation_id"] == task.id
    now = await limit_of(ask, "conversation", conversation_id=task.id)
    assert (now["tokens"], now["is_own"], now["spent"]["tokens"]) == (500, True, 120)
    elsewhere = await limit_of(ask, "conversation", conversation_id=other.id)
    assert (elsewhere["tokens"], elsewhere["is_own"]) == (100, False)
    await stage.answer(task, "raise")
    await stage.work()
    assert [run.status for run in stage.history(task)] == [RunStatus.SUCCESS]
    assert (await limit_of(ask, "conversation", conversation_id=task.id))["tokens"] == 500

    await ask.do("PUT", path, {"limit": None})
    assert (await limit_of(ask, "conversation", conversation_id=task.id))["tokens"] == 100


async def test_the_allowance_of_a_child_is_that_at_the_top(ask: Asker, stage: Stage) -> None:
    top = await stage.chat()
    count = jobs.JobRequest(description="Count", prompt="Count the files.")
    (child,) = await jobs.start(stage.deps, Origin(USER, top.id), [count])

    changed = await ask.do("PUT", f"/api/conversations/{child.id}/allowance", {"limit": "7 tokens"})

    assert changed["conversation_id"] == top.id
    assert (await limit_of(ask, "conversation", conversation_id=top.id))["tokens"] == 7


async def test_only_who_may_consent_raises_and_only_what_is_theirs(
    ask_as: AskAs, stage: Stage
) -> None:
    chat = await stage.chat()
    path = f"/api/conversations/{chat.id}/allowance"
    writer = await ask_as(USER, Scope.READ, Scope.WRITE)
    mate = await ask_as(MATE)

    assert (await writer("PUT", path, {"limit": "none"})).status_code == 403
    assert (await writer("PUT", "/api/me", {"allowances": {"day": "none"}})).status_code == 403
    assert (await mate("PUT", path, {"limit": "none"})).status_code == 404
    user = await ask_as(USER)
    assert (await user("PUT", path, {"limit": "a lot"})).status_code == 400
    assert (await user("PUT", path, {})).status_code == 422
    assert not (await limit_of(user, "conversation", conversation_id=chat.id))["is_own"]


@requirement("Z-allowance")
async def test_an_operator_limits_what_a_user_may_allow_themselves(ask_as: AskAs) -> None:
    operator, mate = await ask_as(USER, role=Role.OPERATOR), await ask_as(MATE)
    await mate.do("PUT", "/api/me", {"allowances": {"day": "900 tokens"}})
    path = f"/api/users/{MATE}/allowances"

    limited = await operator.do("PUT", path, {"allowances": {"day": "500 tokens"}})

    assert [one["tokens"] for one in limited["allowances"] if one["scope"] == "day"] == [500]
    day = await limit_of(mate, "day")
    assert (day["tokens"], day["at_most"]["tokens"], day["is_own"]) == (500, 500, True)
    refused = await mate("PUT", "/api/me", {"allowances": {"day": "none"}})
    assert refused.status_code == 403
    assert refused.json()["detail"] == "Your operator allows 500 tokens for one day."
    await mate.do("PUT", "/api/me", {"allowances": {"day": "400 tokens"}})
    assert (await limit_of(mate, "day"))["tokens"] == 400
    acts = await mate.get("/api/me/audit")
    assert [(one["act"], one["detail"]) for one in acts["items"]] == [
        ("allowance_limited", "day: 500 tokens")
    ]

    await operator.do("PUT", path, {"allowances": {"day": None}})
    await mate.do("PUT", "/api/me", {"allowances": {"day": None}})
    day = await limit_of(mate, "day")
    assert (day["tokens"], day["at_most"]) == (1000, None)


async def test_work_that_was_paused_goes_on_when_an_operator_allows_more(
    ask_as: AskAs, stage: Stage
) -> None:
    operator = await ask_as(USER, role=Role.OPERATOR)
    path = f"/api/users/{MATE}/allowances"
    stage.user(MATE)
    await operator.do("PUT", path, {"allowances": {"user": "50 tokens"}})
    stage.engine.then(Spend(60))
    tasks = [await stage.task(user=MATE), await stage.task(user=MATE)]
    await stage.work()
    # Both runs go on at once: whichever ends first asks, for both.
    asked, waiting = sorted(tasks, key=lambda task: not stage.load(task).questions)
    assert stage.load(waiting).questions == ()
    assert not [run for run in stage.history(waiting) if run.status is RunStatus.SUCCESS]

    await operator.do("PUT", path, {"allowances": {"user": "5000 tokens"}})
    await stage.work()

    assert [run.status for run in stage.history(waiting)] == [RunStatus.SUCCESS]
    assert stage.question(asked).options == ("try again", "stop")


async def test_an_operator_sees_what_each_user_spends(ask_as: AskAs, stage: Stage) -> None:
    operator = await ask_as(USER, role=Role.OPERATOR)
    stage.engine.then(Spend(60))
    await stage.task(user=MATE)
    await stage.work()

    first = await operator.get("/api/operate/spend", limit=1)
    second = await operator.get("/api/operate/spend", limit=1, cursor=first["next"])

    rows = {one["user"]: one for one in [*first["items"], *second["items"]]}
    assert second["next"] is None
    assert rows[MATE]["today"]["tokens"] == 60
    assert rows[MATE]["last_30_days"]["tokens"] == rows[MATE]["total"]["tokens"] == 60
    assert rows[USER]["total"]["tokens"] == 0
    assert [one["scope"] for one in rows[MATE]["allowances"]] == ["day", "user"]


async def test_members_limit_nobody_and_see_no_spending_of_others(ask_as: AskAs) -> None:
    mate = await ask_as(MATE)
    body = {"allowances": {"day": "1 tokens"}}

    assert (await mate("GET", "/api/operate/spend")).status_code == 403
    assert (await mate("PUT", f"/api/users/{USER}/allowances", body)).status_code == 403
    operator = await ask_as(USER, role=Role.OPERATOR)
    assert (await operator("PUT", "/api/users/u_nobody/allowances", body)).status_code == 404
    run = {"allowances": {"run": "1 tokens"}}
    assert (await operator("PUT", f"/api/users/{MATE}/allowances", run)).status_code == 400
