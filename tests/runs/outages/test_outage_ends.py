"""When an outage is over, and which runs say something about it."""

from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import End, Fail, Say, ScriptedEngine, Spend, Wait
from support.stage.provider import (
    DOWN,
    DOWN_FOR_AN_HOUR,
    EVERY_HOUR,
    HOUR,
    MINUTE,
    Provider,
    outages,
    pass_time,
)
from support.stage.stage import Stage
from support.stage.until import until

from backburner.actions import chat
from backburner.actions.deps import Limits
from backburner.core.conversation import Status
from backburner.core.errors import EngineFailed
from backburner.core.routing import Routes
from backburner.ports import TurnRequest
from backburner.runs import prepare
from backburner.runs.stopping import StopReason


async def test_a_run_that_is_interrupted_does_not_end_an_outage(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider())
    await stage.task(EVERY_HOUR)
    await stage.work()
    await pass_time(stage, clock, 10 * MINUTE, MINUTE)
    clock.advance(outages(stage)[0].until - clock.now)
    stage.engine.then(Spend(10), Wait())
    await stage.take_up()
    await until(lambda: outages(stage)[0].until == clock.now)

    stage.underway.stop_all(StopReason.DRAINING)
    await stage.idle()
    await pass_time(stage, clock, 10 * MINUTE, MINUTE)

    assert len(stage.notices()) == 1


async def test_a_probe_that_did_not_try_makes_room_for_another(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider())
    await stage.task(EVERY_HOUR)
    await stage.work()
    clock.advance(outages(stage)[0].until - clock.now)
    stage.engine.then(Wait())
    await stage.take_up()
    assert outages(stage)[0].until > clock.now

    stage.underway.stop_all(StopReason.DRAINING)
    await stage.idle()

    assert outages(stage)[0].until == clock.now


async def test_a_probe_that_gets_no_answer_in_its_time_is_not_to_blame(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(), limits=Limits(run_timeout=timedelta(milliseconds=50)))
    task = await stage.task(EVERY_HOUR)
    await stage.work()
    for _ in range(3):
        clock.advance(6 * MINUTE)
        stage.engine.then(Wait())
        await stage.work()

    after = stage.load(task)
    assert (after.failures, after.status) == (0, Status.BACKGROUND)
    assert outages(stage)[0].message == "The model does not respond."


async def test_an_outage_is_over_when_the_model_answers_badly(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    provider = Provider()

    def local(request: TurnRequest) -> Sequence[Fail | Spend | End]:
        return provider(request) if provider.trouble else [Spend(10), End({"nonsense": 1})]

    stage = set_up(
        engines={"remote": ScriptedEngine(), "local": ScriptedEngine(otherwise=local)},
        default_profile="remote",
        routes=Routes(names=("remote", "local"), chat="remote", background="local"),
    )
    task = await stage.task(EVERY_HOUR)
    await stage.work()
    await pass_time(stage, clock, 10 * MINUTE, MINUTE)
    provider.trouble = None

    await pass_time(stage, clock, HOUR, 10 * MINUTE)

    assert outages(stage) == []
    assert {run.escalated_from for run in stage.history(task)} >= {"local"}


@pytest.mark.parametrize(
    "reason", [StopReason.CANCELLED, StopReason.USER_WAITING, StopReason.DRAINING]
)
async def test_an_interrupted_probe_keeps_the_rest_that_a_provider_asked_for(
    set_up: Callable[..., Stage], clock: SetClock, reason: StopReason
) -> None:
    stage = set_up(otherwise=Provider())
    await stage.task(EVERY_HOUR)
    chat = await stage.chat()
    await stage.work()
    clock.advance(outages(stage)[0].until - clock.now)
    stage.engine.then(Wait())
    await stage.take_up()
    stage.engine.then(DOWN_FOR_AN_HOUR)
    await stage.say(chat, "Hello?")
    await stage.take_up()
    await until(lambda: len(stage.underway) == 1)

    stage.underway.stop_all(reason)
    await stage.idle()

    assert outages(stage)[0].until == clock.now + HOUR


async def test_an_outage_is_over_when_a_model_that_answers_needs_too_long(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(), limits=Limits(run_timeout=timedelta(milliseconds=150)))
    await stage.task(EVERY_HOUR)
    await stage.work()
    clock.advance(HOUR)
    stage.engine.then(Spend(10), Spend(10), Wait())
    await stage.work()

    assert outages(stage) == []


async def test_a_model_that_still_writes_is_not_silent(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(), limits=Limits(run_timeout=timedelta(milliseconds=100)))
    task = await stage.task(EVERY_HOUR)
    await stage.work()
    clock.advance(HOUR)
    # Some engines know the cost of a response at its end only.
    stage.engine.then(Say("A very long text, slowly"), Wait())
    await stage.work()

    assert stage.load(task).failures == 1


async def test_answers_of_another_model_do_not_end_an_outage(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    local, remote = ScriptedEngine(), ScriptedEngine()
    stage = set_up(
        engines={"remote": remote, "local": local},
        default_profile="remote",
        routes=Routes(names=("remote", "local"), chat="remote", background="local"),
    )
    await stage.task(EVERY_HOUR)
    local.then(DOWN)
    await stage.work()
    clock.advance(MINUTE)
    local.then(Fail(EngineFailed("Cannot connect to the sandbox.")))
    remote.then(Spend(10), DOWN)
    await stage.work()

    assert len(remote.requests) == 1
    assert [outage.profile for outage in outages(stage)] == ["local"]


@pytest.mark.parametrize(("asked", "left"), [("remote", ["local"]), ("local", [])])
async def test_a_reply_says_something_about_the_model_that_its_message_asked_for(
    set_up: Callable[..., Stage], asked: str, left: list[str]
) -> None:
    local, remote = ScriptedEngine([DOWN]), ScriptedEngine()
    stage = set_up(
        engines={"remote": remote, "local": local},
        default_profile="remote",
        routes=Routes(names=("remote", "local"), chat="remote", background="local"),
    )
    task = await stage.task(EVERY_HOUR)
    await stage.work()
    assert [outage.profile for outage in outages(stage)] == ["local"]
    # Each is asked for in a conversation of the other.
    place = task if asked == "remote" else await stage.chat()
    await chat.send(stage.deps, place.user_id, place.id, "Hello?", profile=asked)
    await stage.take_up()
    await stage.idle()

    assert stage.history(place)[0].profile == asked
    assert [outage.profile for outage in outages(stage)] == left


async def test_silence_of_another_model_is_not_that_of_the_own(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    local, remote = ScriptedEngine(), ScriptedEngine()
    stage = set_up(
        engines={"remote": remote, "local": local},
        default_profile="remote",
        routes=Routes(names=("remote", "local"), chat="remote", background="local"),
        limits=Limits(run_timeout=timedelta(milliseconds=200)),
    )
    task = await stage.task(EVERY_HOUR)
    local.then(DOWN)
    await stage.work()
    clock.advance(6 * MINUTE)
    local.then(Fail(EngineFailed("There is no such model.")))
    remote.then(Spend(1000), Wait())
    await stage.work()

    assert stage.load(task).failures == 1


async def test_a_probe_that_could_not_be_prepared_makes_room_for_another(
    set_up: Callable[..., Stage], clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = set_up(otherwise=Provider())
    await stage.task(EVERY_HOUR)
    await stage.work()
    clock.advance(outages(stage)[0].until - clock.now)

    def fail(*_arguments: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(prepare, "prepare", fail)
    await stage.take_up()
    await stage.idle()

    assert outages(stage)[0].until == clock.now
