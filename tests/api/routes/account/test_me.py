"""`/api/me` and `/api/spend`: one's zone, the switch for everything, what may be and was spent."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Spend
from support.requirements import requirement
from support.stage.api_stage import AskAs, Asker
from support.stage.make import USER
from support.stage.stage import Stage

from backburner.actions import conversations
from backburner.actions.accounts.profile import note_zone
from backburner.actions.deps import DiscoverySettings
from backburner.core.accounts import ZoneSource
from backburner.core.allowance import Allowance, AllowanceScope

DAY = timedelta(days=1)


@pytest.fixture
def stage(set_up: Callable[..., Stage]) -> Stage:
    """Let everybody spend a thousand tokens a day, and have work looked for."""
    return set_up(
        allowances=(
            Allowance(AllowanceScope.DAY, tokens=1000),
            Allowance(AllowanceScope.RUN, tokens=500),
        ),
        discovery=DiscoverySettings(allowed=True),
    )


async def test_ones_name_is_changed_and_has_to_be_one(ask: Asker) -> None:
    assert (await ask.do("PUT", "/api/me", {"name": " Ada L. "}))["name"] == "Ada L."
    for name in ("a\nb", "x" * 101):
        assert (await ask("PUT", "/api/me", {"name": name})).status_code in (400, 422)
    assert (await ask.get("/api/me"))["name"] == "Ada L."


async def test_ones_settings_are_seen_and_changed_apart(ask: Asker) -> None:
    before = await ask.get("/api/me")
    assert (before["id"], before["zone"], before["role"]) == ("u_user", "UTC", "member")

    await ask.do("PUT", "/api/me", {"zone": "Europe/Berlin"})
    after = await ask.do("PUT", "/api/me", {"paused": True})

    changed = {"zone": "Europe/Berlin", "zone_source": "user", "paused": True}
    assert after == {**before, **changed}
    assert await ask.get("/api/me") == after


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"zone": "Mars/Olympus"}, 400),
        ({"allowances": {"day": "a lot"}}, 400),
        ({"allowances": {"conversation": "1 USD"}}, 400),
        ({"allowances": {"week": "1 USD"}}, 422),
        ({"paused": "perhaps"}, 422),
        ({"role": "operator"}, 422),
    ],
)
async def test_settings_that_are_none_are_refused(ask: Asker, body: object, status: int) -> None:
    before = await ask.get("/api/me")

    assert (await ask("PUT", "/api/me", body)).status_code == status
    assert await ask.get("/api/me") == before


@requirement("Z-everything-off", "A-pause")
async def test_one_switch_lets_all_of_ones_work_stand_still(
    ask: Asker, mate: Asker, stage: Stage
) -> None:
    await ask.do("PUT", "/api/me", {"paused": True})
    task = await stage.task()
    await stage.work()
    assert stage.history(task) == ()
    assert not (await mate.get("/api/me"))["paused"]

    await ask.do("PUT", "/api/me", {"paused": False})
    await stage.work()
    assert len(stage.history(task)) == 1


@requirement("Z-everything-off")
async def test_everybody_sees_that_all_work_stands_still(ask: Asker, stage: Stage) -> None:
    await conversations.pause_everything(stage.deps, None, paused=True)

    shown = await ask.get("/api/me")

    assert (shown["paused"], shown["all_paused"]) == (False, True)


@requirement("B-discovery")
async def test_one_switches_on_and_off_that_the_agent_looks_for_work(
    ask: Asker, mate: Asker
) -> None:
    before = await ask.get("/api/me")
    assert before["discovery"] is False

    after = await ask.do("PUT", "/api/me", {"discovery": True})

    status = after["discovery_status"]
    assert after == {**before, "discovery": True, "discovery_status": status}
    assert (status["next_run_at"], status["last_run_at"]) == ("2026-11-16T12:30:00Z", None)
    assert (status["paused"], status["folder"], status["repository"]) == (False, None, "")
    assert (await mate.get("/api/me"))["discovery"] is False
    assert await ask.do("PUT", "/api/me", {"discovery": False}) == before


async def limits(ask: Asker) -> dict[str, int | None]:
    return {one["scope"]: one["tokens"] for one in (await ask.get("/api/me"))["allowances"]}


async def test_what_may_be_spent_is_set_and_given_back(ask: Asker) -> None:
    usual = {"day": 1000, "run": 500}
    assert await limits(ask) == usual

    await ask.do("PUT", "/api/me", {"allowances": {"day": "70 tokens", "run": "none"}})
    assert await limits(ask) == {"day": 70, "run": None}
    await ask.do("PUT", "/api/me", {"allowances": {"day": None, "run": None}})

    assert await limits(ask) == usual


async def test_what_was_spent_is_told_by_day_and_conversation(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    stage.engine.then(Spend(100))
    stage.engine.then(Spend(200))
    first = await stage.task()
    await stage.work()
    clock.advance(2 * DAY)
    await stage.task()
    await stage.work()

    shown = await ask.get("/api/spend", conversation_id=first.id)

    assert (shown["total"]["tokens"], shown["today"]["tokens"]) == (300, 200)
    assert shown["conversation"]["tokens"] == 100
    days = [(day["begins_at"], day["spent"]["tokens"]) for day in shown["days"]]
    assert days == [("2026-11-18T00:00:00Z", 200), ("2026-11-16T00:00:00Z", 100)]
    by_scope = {one["scope"]: one for one in shown["allowances"]}
    assert (by_scope["day"]["tokens"], by_scope["day"]["spent"]["tokens"]) == (1000, 200)
    assert not by_scope["day"]["is_used_up"]
    assert by_scope["run"]["spent"] is None
    assert [one["spent"]["tokens"] for one in shown["top"]] == [200, 100]
    assert shown["top"][1]["conversation_id"] == first.id
    assert (await ask.get("/api/spend"))["conversation"] is None


async def test_an_allowance_that_is_used_up_says_so(ask_as: AskAs, stage: Stage) -> None:
    ask = await ask_as()
    await ask.do("PUT", "/api/me", {"allowances": {"day": "70 tokens"}})
    stage.engine.then(Spend(100))
    await stage.task()
    await stage.work()

    shown = await ask.get("/api/spend")

    (day,) = [one for one in shown["allowances"] if one["scope"] == "day"]
    assert day["is_used_up"]
    assert (await ask.get("/api/questions"))["items"][0]["purpose"] == "allowance"


@requirement("Z-zone")
async def test_a_zone_that_was_found_counts_until_the_user_sets_one(
    ask: Asker, stage: Stage
) -> None:
    async def zone() -> tuple[str, str]:
        me = await ask.get("/api/me")
        return me["zone"], me["zone_source"]

    assert await zone() == ("UTC", "none")
    await ask.do("PUT", "/api/me", {"found_zone": "Europe/Berlin"})
    assert await zone() == ("Europe/Berlin", "terminal")
    await note_zone(stage.deps, USER, "Asia/Tokyo", ZoneSource.BROWSER)
    assert await zone() == ("Asia/Tokyo", "browser")
    # The machine of the server may be anywhere.
    await ask.do("PUT", "/api/me", {"found_zone": "Europe/Berlin"})
    assert await zone() == ("Asia/Tokyo", "browser")
    await ask.do("PUT", "/api/me", {"found_zone": "Mars/Olympus"})
    assert await zone() == ("Asia/Tokyo", "browser")

    await ask.do("PUT", "/api/me", {"zone": "UTC"})
    await note_zone(stage.deps, USER, "Asia/Tokyo", ZoneSource.BROWSER)
    assert await zone() == ("UTC", "user")


@requirement("Z-zone")
async def test_schedules_that_exist_keep_their_zone(ask: Asker) -> None:
    task = {"name": "CI", "prompt": "Look.", "when": "every day at 9"}
    await ask.do("PUT", "/api/me", {"zone": "Europe/Berlin"})
    before = await ask.do("POST", "/api/tasks", task)
    await ask.do("PUT", "/api/me", {"zone": "Asia/Tokyo"})
    after = await ask.do("POST", "/api/tasks", {**task, "name": "CD"})

    assert (await ask.get(f"/api/tasks/{before['id']}"))["schedule"] == before["schedule"]
    assert [made["schedule"]["timezone"] for made in (before, after)] == [
        "Europe/Berlin",
        "Asia/Tokyo",
    ]
