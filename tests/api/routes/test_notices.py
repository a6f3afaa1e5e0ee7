"""`/api/notices`: what users were told, and whether they have seen it."""

from datetime import timedelta

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import End
from support.stage.api_stage import NOBODYS, Asker
from support.stage.stage import PLACE, Stage
from support.statements import watched

from backburner.core.conversation import Destination, Notify
from backburner.core.errors import ChannelFailed


async def test_notices_are_listed_newest_first_and_seen(ask: Asker, stage: Stage) -> None:
    for _ in range(3):
        await stage.task()
        await stage.work()
    told = (await ask.get("/api/notices"))["items"]
    assert [one["text"] for one in told] == ["Done."] * 3
    assert (told[0]["kind"], told[0]["seen_at"]) == ("result", None)

    assert await ask.do("POST", "/api/notices/seen", {"ids": [told[0]["id"]]}) == {"seen": 1}
    unseen = (await ask.get("/api/notices", unseen=True))["items"]
    assert [one["id"] for one in unseen] == [one["id"] for one in told[1:]]
    assert await ask.do("POST", "/api/notices/seen", {"up_to": told[1]["id"]}) == {"seen": 2}
    assert (await ask.get("/api/notices", unseen=True))["items"] == []
    assert await ask.do("POST", "/api/notices/seen", {"up_to": told[1]["id"]}) == {"seen": 0}


async def test_a_notice_is_seen_once_its_question_is_answered_or_its_conversation_read(
    ask: Asker, stage: Stage
) -> None:
    question = {"type": "choice", "prompt": "Which one?", "options": ["left", "right"]}
    stage.engine.then(End({"needs_input": True, "message": "Two.", "question": question}))
    asks = await stage.task()
    await stage.work()
    done = await stage.task()
    await stage.work()
    assert len((await ask.get("/api/notices", unseen=True))["items"]) == 2

    await ask.do("POST", f"/api/questions/{stage.question(asks).id}/answer", {"answer": "left"})
    (unseen,) = (await ask.get("/api/notices", unseen=True))["items"]
    assert unseen["conversation_id"] == done.id
    await ask.do("POST", f"/api/conversations/{done.id}/seen")
    assert (await ask.get("/api/notices", unseen=True))["items"] == []


async def test_a_notice_names_its_work_and_what_to_open(ask: Asker, stage: Stage) -> None:
    question = {"type": "choice", "prompt": "Which one?", "options": ["left", "right"]}
    stage.engine.then(End({"needs_input": True, "message": "I found two.", "question": question}))
    asks = await stage.task(title="tidy")
    await stage.work()
    done = await stage.task(title="look")
    await stage.work()
    result, asked = (await ask.get("/api/notices"))["items"]

    assert (asked["title"], asked["text"]) == ("tidy", "Which one?")
    assert (asked["message"], asked["options"]) == ("I found two.", ["left", "right"])
    assert asked["address"] == f"/q/{stage.question(asks).id}"
    assert (result["title"], result["message"], result["options"]) == ("look", None, [])
    assert result["address"] == f"/c/{done.id}"


async def test_a_notice_says_what_became_of_its_deliveries(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    places = (Destination(PLACE, "me"), Destination("nowhere", "me"), Destination(PLACE, "you"))
    stage.engine.then(End({"complete": True, "message": "Found."}))
    await stage.task(notify=Notify.ALWAYS, reports_to=places)
    await stage.work()
    (before,) = (await ask.get("/api/notices"))["items"]
    stage.channel.failures.append(ChannelFailed("busy", retry_after=timedelta(minutes=1)))
    while await stage.deliverer.run_once():
        pass
    with watched(stage.database) as statements:
        (after,) = (await ask.get("/api/notices"))["items"]

    assert {one["state"] for one in before["deliveries"]} == {"waiting"}
    later = (clock.now + timedelta(minutes=1)).isoformat().replace("+00:00", "Z")
    nothing = {"error": None, "next_try_at": None, "attempts": 1}
    assert after["deliveries"] == [
        {
            **nothing,
            "channel": PLACE,
            "target": "me",
            "state": "waiting",
            "error": "busy",
            "next_try_at": later,
        },
        {
            **nothing,
            "channel": "nowhere",
            "target": "me",
            "state": "failed",
            "error": "The channel 'nowhere' is not set up.",
        },
        {**nothing, "channel": PLACE, "target": "you", "state": "sent"},
    ]
    assert len([one for one, _ in statements if "deliveries" in one]) == 1
    assert len([one for one, _ in statements if "notices" in one]) == 1


async def test_pages_of_notices_shift_by_nothing(ask: Asker, stage: Stage) -> None:
    for number in range(3):
        await stage.task(title=f"{number}")
        await stage.work()
    everything = [one["id"] for one in (await ask.get("/api/notices"))["items"]]

    first = await ask.get("/api/notices", limit=2)
    await stage.task()
    await stage.work()
    second = await ask.get("/api/notices", limit=2, cursor=first["next"])

    assert [one["id"] for page in (first, second) for one in page["items"]] == everything


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"ids": [], "up_to": "n_1"}, 400),
        ({"ids": ["n_1"] * 201}, 422),
        ({"up_to": f"n_{NOBODYS}"}, 404),
    ],
)
async def test_what_was_seen_has_to_be_said(ask: Asker, body: object, status: int) -> None:
    assert (await ask("POST", "/api/notices/seen", body)).status_code == status


async def test_nobody_sees_for_somebody_else(ask: Asker, mate: Asker, stage: Stage) -> None:
    await stage.task()
    await stage.work()
    (told,) = (await ask.get("/api/notices"))["items"]

    assert await mate.do("POST", "/api/notices/seen", {"ids": [told["id"]]}) == {"seen": 0}
    theirs = await mate("POST", "/api/notices/seen", {"up_to": told["id"]})
    assert theirs.status_code == 404
    assert (await ask.get("/api/notices", unseen=True))["items"] == [told]
