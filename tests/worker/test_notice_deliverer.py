"""Notices that are sent through channels: tried again, given up, and in nobody's way."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from sqlalchemy import text
from support.doubles.channel import RecordingChannel
from support.doubles.clock import SetClock
from support.doubles.engine import End
from support.requirements import requirement
from support.stage.make import MATE
from support.stage.stage import PLACE, Stage
from support.stage.stages import clock, database, set_up, stage
from support.stage.until import until
from support.stage.whole_worker import working

from backburner.core.conversation import Destination, Notify
from backburner.core.errors import ChannelFailed, StoreFailed
from backburner.core.run import RunStatus
from backburner.ports import ChannelMessage
from backburner.worker.notice_deliverer import Deliverer

__all__ = ["clock", "database", "set_up", "stage"]

MINUTE = timedelta(minutes=1)
TOLD = End({"complete": True, "message": "Found."})


@requirement("Z-honest")
async def test_what_cannot_be_sent_is_tried_again_apart_from_the_run(
    stage: Stage, clock: SetClock
) -> None:
    stage.engine.then(TOLD)
    task = await stage.task(notify=Notify.ALWAYS, reports_to=(Destination(PLACE, "me"),))
    await stage.work()
    stage.channel.failures += [ChannelFailed("busy"), ChannelFailed("later", retry_after=MINUTE)]
    assert stage.history(task)[0].status is RunStatus.SUCCESS

    assert await stage.deliverer.run_once()
    assert not await stage.deliverer.run_once()
    clock.advance(timedelta(seconds=5))
    assert await stage.deliverer.run_once()
    clock.advance(timedelta(seconds=59))
    assert not await stage.deliverer.run_once()
    clock.advance(timedelta(seconds=1))
    assert await stage.deliverer.run_once()

    assert [text for _, text, _ in stage.channel.sent] == [
        f"Work: Found.\n\nTo read on: `backburner conversations {task.id}`."
    ]


async def test_without_a_known_server_a_question_is_sent_with_a_command_to_answer_it(
    stage: Stage,
) -> None:
    question = {"type": "confirmation", "prompt": "Shall I?"}
    stage.engine.then(End({"needs_input": True, "message": "Hm.", "question": question}))
    task = await stage.task(title="tidy", reports_to=(Destination(PLACE, "me"),))
    await stage.work()
    assert await stage.deliverer.run_once()

    ((_, text, _),) = stage.channel.sent
    command = f"backburner questions {stage.question(task).id}"
    assert text.endswith(f"Options: yes / no\n\nTo see and answer it: `{command}`.")


async def test_a_question_is_sent_with_its_work_message_options_and_address(stage: Stage) -> None:
    stage.deliverer.deps = replace(stage.deps, base_url="https://bb.example")
    question = {"type": "choice", "prompt": "Which one?", "options": ["left", "right"]}
    stage.engine.then(End({"needs_input": True, "message": "I found two.", "question": question}))
    task = await stage.task(title="tidy", reports_to=(Destination(PLACE, "me"),))
    await stage.work()
    assert await stage.deliverer.run_once()

    ((_, text, _),) = stage.channel.sent
    asked = stage.question(task)
    assert text == (
        "tidy: I found two.\n\nWhich one?\n\nOptions: left / right\n\n"
        f"https://bb.example/q/{asked.id}"
    )


async def test_one_channel_that_hangs_holds_up_no_other_and_is_tried_again(
    stage: Stage, clock: SetClock
) -> None:
    class Hangs(RecordingChannel):
        async def send(self, message: ChannelMessage) -> str | None:
            del message
            await asyncio.Event().wait()
            return None

    stage.deps.channels["hangs"] = Hangs()  # type: ignore[index]
    stage.engine.then(TOLD)
    await stage.task(
        notify=Notify.ALWAYS, reports_to=(Destination("hangs", "me"), Destination(PLACE, "me"))
    )
    await stage.work()

    assert await Deliverer(stage.deps, lease=timedelta(milliseconds=200)).run_once()

    assert len(stage.channel.sent) == 1
    clock.advance(timedelta(seconds=5))
    again = await stage.deps.store.transact(lambda tx: tx.deliveries.lease(lease=MINUTE))
    assert again is not None
    assert (again.channel, again.attempts) == ("hangs", 2)


async def test_slow_places_of_one_user_leave_room_for_the_messages_of_others(
    stage: Stage, clock: SetClock
) -> None:
    sending, goes_on = list[str](), asyncio.Event()

    class Slow(RecordingChannel):
        async def send(self, message: ChannelMessage) -> str | None:
            sending.append(message.target)
            await goes_on.wait()
            return await super().send(message)

    stage.deps.channels["slow"] = slow = Slow()  # type: ignore[index]
    places = tuple(Destination("slow", str(number)) for number in range(9))
    stage.engine.then(TOLD)
    await stage.task(notify=Notify.ALWAYS, reports_to=places)
    await stage.work()
    clock.advance(timedelta(seconds=1))
    stage.engine.then(TOLD)
    await stage.task(
        user=stage.user(MATE), notify=Notify.ALWAYS, reports_to=(Destination(PLACE, "mate"),)
    )
    await stage.work()

    deliverer = Deliverer(stage.deps)
    sends = asyncio.create_task(deliverer.run_once())
    await until(lambda: stage.channel.sent)
    assert sending == ["0", "1"]
    goes_on.set()
    await sends
    while await deliverer.run_once():
        pass

    assert len(slow.sent) == 9
    assert len(stage.channel.sent) == 1


async def test_what_was_leased_is_sent_although_the_next_lease_fails(stage: Stage) -> None:
    stage.engine.then(TOLD)
    places = (Destination(PLACE, "one"), Destination(PLACE, "two"))
    await stage.task(notify=Notify.ALWAYS, reports_to=places)
    await stage.work()
    leases, transact = count(), stage.deps.store.transact

    class Failing:
        async def transact(self, work: Any, **limits: Any) -> Any:
            if next(leases) == 1:
                raise StoreFailed("The database is gone.")
            return await transact(work, **limits)

    with pytest.raises(StoreFailed):
        await Deliverer(replace(stage.deps, store=Failing())).run_once()  # type: ignore[arg-type]

    assert len(stage.channel.sent) == 1


@requirement("Z-honest")
async def test_what_can_never_be_sent_is_given_up_and_the_reason_kept(stage: Stage) -> None:
    stage.engine.then(TOLD)
    places = (Destination("nowhere", "me"), Destination(PLACE, "me"))
    task = await stage.task(notify=Notify.ALWAYS, reports_to=places)
    await stage.work()
    stage.channel.failures.append(ChannelFailed("no such channel", permanent=True))
    while await stage.deliverer.run_once():
        pass

    rows = stage.database.run(
        lambda tx: tx.connection.exec_driver_sql("SELECT state, error FROM deliveries").all()
    )
    assert {tuple(row) for row in rows} == {
        ("failed", "The channel 'nowhere' is not set up."),
        ("failed", "no such channel"),
    }
    assert stage.history(task)[0].status is RunStatus.SUCCESS
    assert sorted(stage.said(task)[1:]) == [
        "This notice could not be delivered through nowhere: The channel 'nowhere' is not set up.",
        "This notice could not be delivered through outside: no such channel",
    ]


async def test_a_worker_that_stops_records_what_it_is_just_sending(stage: Stage) -> None:
    """Otherwise it is sent again by the next one, once its lease has expired."""
    is_sending, goes_on = asyncio.Event(), asyncio.Event()

    class Slow(RecordingChannel):
        async def send(self, message: ChannelMessage) -> str | None:
            is_sending.set()
            await goes_on.wait()
            return await super().send(message)

    stage.deps.channels["slow"] = slow = Slow()  # type: ignore[index]
    stage.engine.then(TOLD)
    async with working(stage):
        await stage.task(notify=Notify.ALWAYS, reports_to=(Destination("slow", "me"),))
        await is_sending.wait()
        asyncio.get_running_loop().call_later(0.1, goes_on.set)

    assert len(slow.sent) == 1
    sent = text("SELECT state FROM deliveries")
    assert stage.database.run(lambda tx: tx.connection.execute(sent).scalar_one()) == "sent"
