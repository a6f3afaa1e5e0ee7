"""What people are told of an outage: its beginning once, and its end once."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Say
from support.stage.provider import (
    BACK,
    DOWN_FOR_AN_HOUR,
    EVERY_HOUR,
    HOUR,
    MINUTE,
    Provider,
    let_probe_hang,
    outages,
    pass_time,
)
from support.stage.stage import Stage

from backburner.core import retry
from backburner.worker.outage_reporter import OutageReporter


async def test_what_one_process_listed_is_not_told_after_another_has_told_the_end(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider())
    await stage.task(EVERY_HOUR)
    await stage.work()
    clock.advance(2 * MINUTE)
    slow, quick = OutageReporter(stage.deps), OutageReporter(stage.deps)
    (outage,) = outages(stage)
    (user,) = stage.database.run(lambda tx: slow._list_users(tx, outage, ""))
    await quick.run_once()
    stage.database.run(lambda tx: tx.outages.end("scripted"))
    await quick.run_once()

    stage.database.run(lambda tx: slow._tell(outage, user, tx))
    await slow.run_once()

    assert len(stage.notices()) == 2


@pytest.mark.parametrize("hangs", [False, True])
async def test_trouble_a_month_later_is_told(
    set_up: Callable[..., Stage], clock: SetClock, *, hangs: bool
) -> None:
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR))
    await stage.task()
    await stage.work()
    await pass_time(stage, clock, retry.MAX_OUTAGE_WAIT + 2 * HOUR, HOUR)
    told = len(stage.notices())

    clock.advance(timedelta(days=30))
    await stage.task()
    if hangs:
        hung = await let_probe_hang(stage, clock)
        hung.set()
        await stage.idle()
    await stage.work()
    await pass_time(stage, clock, 2 * HOUR, MINUTE)

    assert len(stage.notices()) == told + 1


async def test_trouble_before_the_network_is_up_is_not_told_again_and_its_end_is(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    provider = Provider()
    stage = set_up(otherwise=provider)
    await stage.task(EVERY_HOUR)
    chat = await stage.chat()
    await stage.work()
    await pass_time(stage, clock, 10 * MINUTE, MINUTE)
    clock.sleep(timedelta(days=2))
    clock.advance(MINUTE)
    await stage.work()
    await stage.outage_reporter.run_once()
    assert outages(stage)

    provider.trouble = None
    stage.engine.then(Say("Hello."))
    await stage.say(chat, "Hello?")
    await stage.work()
    await stage.outage_reporter.run_once()

    told = [text for text in stage.notices() if "model" in text]
    assert (len(told), told[-1]) == (2, BACK)
