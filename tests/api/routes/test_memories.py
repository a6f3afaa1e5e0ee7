"""`/api/memories`: what is remembered across conversations."""

from datetime import timedelta

import pytest
from support.doubles.clock import SetClock
from support.requirements import requirement
from support.stage.api_stage import Asker


async def test_something_is_remembered_changed_and_forgotten(ask: Asker, clock: SetClock) -> None:
    path = "/api/memories/home/coffee%20&%20tea"

    first = await ask("PUT", path, {"text": "Black."})
    assert first.status_code == 201
    clock.advance(timedelta(minutes=1))
    again = await ask("PUT", path, {"text": "With milk."})

    assert again.status_code == 200
    shown = await ask.get(path)
    assert (shown["key"], shown["text"]) == ("home/coffee & tea", "With milk.")
    assert (shown["outside"], shown["conversation_id"]) == (False, None)
    assert shown["created_at"] < shown["updated_at"]
    assert (await ask.get("/api/memories"))["items"] == [shown]
    assert (await ask("DELETE", path)).status_code == 204
    assert (await ask("DELETE", path)).status_code == 404
    assert (await ask("GET", path)).status_code == 404


async def test_memories_come_by_key_page_by_page(ask: Asker) -> None:
    for key in "dbeac":
        await ask.do("PUT", f"/api/memories/{key}", {"text": key})

    first = await ask.get("/api/memories", limit=3)
    await ask.do("PUT", "/api/memories/aa", {"text": "new"})
    second = await ask.get("/api/memories", limit=3, cursor=first["next"])

    assert [one["key"] for page in (first, second) for one in page["items"]] == list("abcde")


@pytest.mark.parametrize(
    ("key", "body", "status"),
    [
        ("a", {"text": ""}, 400),
        ("a", {"text": "x" * 10_001}, 413),
        ("x" * 201, {"text": "a"}, 413),
        ("a%00", {"text": "a"}, 400),
        ("%20", {"text": "a"}, 400),
        ("a", {"text": "a", "outside": False}, 422),
        ("a", {}, 422),
    ],
)
async def test_what_cannot_be_remembered_is_refused(
    ask: Asker, key: str, body: object, status: int
) -> None:
    assert (await ask("PUT", f"/api/memories/{key}", body)).status_code == status
    assert (await ask.get("/api/memories"))["items"] == []


@requirement("B-memory")
async def test_memories_are_searched_for_words_the_best_first(ask: Asker) -> None:
    for key, text in {"tea": "With milk.", "milk": "Oat milk for tea.", "ci": "Passed."}.items():
        await ask.do("PUT", f"/api/memories/{key}", {"text": text})

    found = await ask.get("/api/memories", q="oat te")

    assert ([one["key"] for one in found["items"]], found["next"]) == (["milk", "tea"], None)
    assert [one["key"] for one in (await ask.get("/api/memories", q="te", limit=1))["items"]] == [
        "milk"
    ]
    for odd in ('"', "NOT (", "🎉", "%", ""):
        assert (await ask.get("/api/memories", q=odd))["items"] == []
    assert (await ask("GET", f"/api/memories?q={'x' * 1_001}")).status_code == 413
    assert (await ask("GET", "/api/memories?q=a%00")).status_code == 400
