"""Parents that wait for their children take no seat from them."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from support.doubles.engine import Call, End, Say, Step
from support.requirements import requirement
from support.stage.job_stage import House, hand_out, started

from backburner.core.conversation import Conversation, EndedAs
from backburner.core.run import RunKind, RunStatus
from backburner.ports import TurnRequest
from backburner.store.db import Database
from backburner.worker.seats import Seats
from backburner.worker.service import Pace, Worker

#: Longer than any test: whatever happens is not because of it.
NEVER = timedelta(hours=1)
PACE = Pace(poll=NEVER, per_user=5)
PARENTS = 5


def block(house: House) -> Callable[[TurnRequest], Iterator[Step]]:
    """Hand out two jobs and wait for them; where the run goes on, say that it did."""

    def script(request: TurnRequest) -> Iterator[Step]:
        if "The jobs you waited for" in request.prompt:
            yield Say("Both are back.")
            yield End({"complete": True, "message": "Both are back."})
            return
        before = len(house.engine.results)
        yield from hand_out("say One.", "say Two.")
        ids = started([one.text for one in house.engine.results[before:]])
        yield Call("background_block", {"task_ids": ids, "timeout": 600})

    return script


async def work(house: House, seats: int, done: Callable[[], bool]) -> None:
    """Let a whole worker work until something is so."""
    worker = Worker(house.deps, house.bus, seats=Seats(total=seats), pace=PACE)
    stopping = asyncio.Event()
    task = asyncio.create_task(worker.run(stopping))
    try:
        await house.until(done)
    finally:
        stopping.set()
        await task


@requirement("C-block")
@pytest.mark.parametrize("seats", [5, 1])
async def test_parents_that_wait_leave_their_seats_to_their_children(
    database: Database, seats: int
) -> None:
    house = House(database)
    parents = [await house.task() for _ in range(PARENTS)]
    chat = await house.chat()
    house.chats.extend([block(house)] * 2 * (PARENTS + 1))
    await house.say(chat, "Please.")

    def have_ended() -> bool:
        return "Both are back." in house.said(chat) and all(
            house.load(parent).ended_as is EndedAs.COMPLETED for parent in parents
        )

    await work(house, seats, have_ended)

    for parent in parents:
        assert_waited(house, parent, RunKind.BACKGROUND)
    assert_waited(house, chat, RunKind.REPLY)
    assert house.engine.most_underway <= seats


def assert_waited(house: House, parent: Conversation, kind: RunKind) -> None:
    """See that a parent went on once, in the run in which it had waited."""
    (run,) = house.history(parent)
    assert (run.kind, run.status) == (kind, RunStatus.SUCCESS)
    going_on = house.prompts(parent)[-1]
    assert "2 of 2 have settled." in going_on
    assert all(words in going_on for words in ("One.\n</outside", "Two.\n</outside"))
