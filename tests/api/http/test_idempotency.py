"""Requests that come twice, because their answer was lost or somebody was impatient."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

import httpx2
import pytest
from sqlalchemy import select
from support.doubles.clock import SetClock
from support.stage.api_stage import AskAs, Asker
from support.stage.make import USER
from support.stage.stage import Stage

from backburner.core.accounts import Scope
from backburner.core.errors import StoreFailed
from backburner.core.run import Turn
from backburner.ports import Store, Tx
from backburner.store import tables
from backburner.worker.pruner import Pruner

T = TypeVar("T")
PATH = "/api/conversations"
CHAT = {"message": "Hello."}


async def post(ask: Asker, path: str, body: object = None, key: str = "k") -> httpx2.Response:
    return await ask("POST", path, body, headers={"Idempotency-Key": key})


async def count(ask: Asker) -> int:
    return len((await ask.get(PATH))["items"])


@dataclass
class LossyStore:
    """Does so many transactions; of the one after it loses the answer, or the question."""

    store: Store
    whole: int
    done: bool

    async def transact(self, work: Callable[[Tx], T], **limits: Any) -> T:
        return await self._lose(self.store.transact(work, **limits))

    async def read(self, work: Callable[[Tx], T], **limits: Any) -> T:
        return await self._lose(self.store.read(work, **limits))

    async def _lose(self, transaction: Coroutine[Any, Any, T]) -> T:
        self.whole -= 1
        if self.whole < 0 and not self.done:
            transaction.close()
            raise StoreFailed("The database does not answer.")
        result = await transaction
        if self.whole < 0:
            raise StoreFailed("The database does not answer.")
        return result

    async def commit(self, turn: Turn, work: Callable[[Tx], None], *, alone: bool = False) -> None:
        await self.store.commit(turn, work, alone=alone)


async def test_a_request_that_comes_again_gets_the_same_answer_and_is_not_done_again(
    ask: Asker, clock: SetClock
) -> None:
    first = await post(ask, PATH, CHAT)
    clock.advance(timedelta(hours=23))
    again = await post(ask, PATH, CHAT)

    assert (first.status_code, first.json()["kind"]) == (201, "chat")
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["content-type"] == first.headers["content-type"]
    assert await count(ask) == 1


async def test_what_would_be_a_conflict_is_answered_as_before(ask: Asker, stage: Stage) -> None:
    task = await stage.task()

    answers = [await post(ask, f"{PATH}/{task.id}/pause") for _ in range(3)]

    assert [one.status_code for one in answers] == [200, 200, 200]


async def test_a_key_is_for_one_request_of_one_user(ask: Asker, mate: Asker) -> None:
    await post(ask, PATH, CHAT)

    for path, body in ((PATH, {"message": "Bye."}), ("/api/notices/seen", CHAT)):
        other = await post(ask, path, body)
        assert other.status_code == 422
        assert "another request" in other.json()["detail"]
    assert (await post(mate, PATH, CHAT)).status_code == 201
    assert (await post(ask, PATH, CHAT, key="other")).status_code == 201
    assert (await count(ask), await count(mate)) == (2, 1)


async def test_what_was_refused_may_be_tried_again_with_its_key(ask: Asker, stage: Stage) -> None:
    task = await stage.task()
    path = f"{PATH}/{task.id}/resume"
    assert (await post(ask, path)).status_code == 409
    await ask.do("POST", f"{PATH}/{task.id}/pause")

    assert (await post(ask, path)).status_code == 200
    assert (await post(ask, PATH, {"message": ""}, key="b")).status_code == 400
    assert (await post(ask, PATH, {"surprise": ""}, key="b")).status_code == 422
    assert (await post(ask, PATH, CHAT, key="b")).status_code == 201


async def test_of_many_at_the_same_time_one_is_done(ask: Asker) -> None:
    answers = await asyncio.gather(*(post(ask, PATH, CHAT) for _ in range(8)))

    statuses = [one.status_code for one in answers]
    assert set(statuses) <= {201, 409}
    assert 201 in statuses
    for refused in (one for one in answers if one.status_code == 409):
        assert refused.headers["retry-after"] == "1"
    assert await count(ask) == 1
    assert (await post(ask, PATH, CHAT)).status_code == 201
    assert await count(ask) == 1


@dataclass
class CountingStore:
    store: Store
    transactions: int = 0

    async def transact(self, work: Callable[[Tx], T], **limits: Any) -> T:
        self.transactions += 1
        return await self.store.transact(work, **limits)

    async def read(self, work: Callable[[Tx], T], **limits: Any) -> T:
        self.transactions += 1
        return await self.store.read(work, **limits)

    async def commit(self, turn: Turn, work: Callable[[Tx], None], *, alone: bool = False) -> None:
        await self.store.commit(turn, work, alone=alone)


async def test_with_a_key_the_caller_is_identified_once(ask: Asker, stage: Stage) -> None:
    # The first use of a token is recorded.
    assert await count(ask) == 0
    store = CountingStore(stage.deps.store)
    ask.api.state.deps = replace(stage.deps, store=store)

    assert (await ask("POST", PATH, CHAT)).status_code == 201
    without_key, store.transactions = store.transactions, 0
    assert (await post(ask, PATH, CHAT)).status_code == 201

    # A key costs two transactions: to reserve it, and to store the response.
    assert store.transactions == without_key + 2


#: The caller is identified and the key reserved before the request itself; afterwards the
#: conversation is read, and the response stored.
@pytest.mark.parametrize(("whole", "done", "made"), [(2, True, 1), (2, False, 0), (4, False, 1)])
async def test_after_an_answer_was_lost_nothing_is_done_twice(
    ask: Asker, stage: Stage, clock: SetClock, whole: int, *, done: bool, made: int
) -> None:
    assert await count(ask) == 0
    ask.api.state.deps = replace(stage.deps, store=LossyStore(stage.deps.store, whole, done))
    assert (await post(ask, PATH, CHAT)).status_code == 503
    ask.api.state.deps = stage.deps
    assert await count(ask) == made

    soon = await post(ask, PATH, CHAT)
    assert (soon.status_code, soon.headers.get("retry-after")) == (409, "1")
    clock.advance(timedelta(minutes=3))
    later = await post(ask, PATH, CHAT)

    assert (later.status_code, later.headers.get("retry-after")) == (409, None)
    assert "Check whether it was executed" in later.json()["hint"]
    assert await count(ask) == made


@pytest.mark.parametrize("key", ["", "x" * 201, "schlüssel"])
async def test_a_key_is_up_to_two_hundred_characters_of_ascii(ask: Asker, key: str) -> None:
    headers = {"Idempotency-Key": key.encode("latin-1")}

    answer = await ask("POST", PATH, CHAT, headers=headers)

    assert answer.status_code == 400
    assert await count(ask) == 0


async def test_who_is_not_signed_in_takes_no_key(ask: Asker, stage: Stage) -> None:
    headers = {"Idempotency-Key": "k"}
    answer = await ask.client.post(PATH, json=CHAT, headers=headers)

    assert answer.status_code == 401
    rows = stage.database.run(lambda tx: tx.connection.execute(select(tables.answers)).all())
    assert rows == []


async def test_answers_are_forgotten_after_a_day(ask: Asker, stage: Stage, clock: SetClock) -> None:
    await post(ask, PATH, CHAT)
    pruner = Pruner(stage.deps, timedelta(days=90))
    clock.advance(timedelta(hours=24))
    await pruner.run_once()
    assert (await post(ask, PATH, CHAT)).headers.get("idempotency-replayed") == "true"

    clock.advance(timedelta(seconds=1))
    await pruner.run_once()

    assert (await post(ask, PATH, CHAT)).headers.get("idempotency-replayed") is None
    assert await count(ask) == 2


async def test_a_key_with_anything_but_a_post_means_nothing(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    headers = {"Idempotency-Key": "k"}
    for title in ("One", "Two"):
        answer = await ask("PATCH", f"{PATH}/{chat.id}", {"title": title}, headers=headers)
        assert answer.json()["title"] == title


async def test_who_may_only_read_gets_no_stored_response(ask: Asker, ask_as: AskAs) -> None:
    first = await post(ask, PATH, CHAT)
    reads = await ask_as(USER, Scope.READ)

    refused = await post(reads, PATH, CHAT)

    assert refused.status_code == 403
    assert (await post(ask, PATH, CHAT)).json() == first.json()
