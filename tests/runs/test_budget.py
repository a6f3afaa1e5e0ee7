"""What may be spent is never exceeded by more than a call, and asked about when it is used up."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import MODEL, Call, Say, Spend
from support.requirements import requirement
from support.stage.make import NOON, USER
from support.stage.stage import Stage

from backburner.actions import conversations
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.work import control
from backburner.core.allowance import Allowance, AllowanceScope, Price, find_price
from backburner.core.conversation import EndedAs, PauseReason, Status
from backburner.core.ids import ConversationId, UserId
from backburner.core.question import Purpose
from backburner.core.run import RunKind, RunStatus
from backburner.core.schedule import Interval
from backburner.core.transitions import RAISE_ALLOWANCE, STOP, TRY_AGAIN, WAIT_UNTIL_TOMORROW
from backburner.store import tables

SetUp = Callable[..., Stage]
HOURLY = Interval(timedelta(hours=1), anchor=NOON)


def limited(set_up: SetUp, scope: AllowanceScope, tokens: int, **more: Any) -> Stage:
    return set_up(allowances=(Allowance(scope, tokens=tokens),), **more)


@requirement("Z-allowance")
async def test_a_run_that_has_spent_what_it_may_stops_and_asks(set_up: SetUp) -> None:
    stage = limited(set_up, AllowanceScope.RUN, 100)
    stage.engine.then(Spend(60), Spend(60), Call("look"), Say("Never."))
    task = await stage.task(HOURLY)

    await stage.work()

    question = stage.question(task)
    assert (question.purpose, question.options) == (Purpose.ALLOWANCE, (RAISE_ALLOWANCE, STOP))
    assert "100 tokens" in question.prompt
    assert stage.tools.calls == []
    assert stage.notices() == [question.prompt]
    assert [run.status for run in stage.history(task)] == [RunStatus.QUEUED]


async def test_a_raised_allowance_lets_the_same_run_go_on(set_up: SetUp) -> None:
    stage = limited(set_up, AllowanceScope.RUN, 100)
    stage.engine.then(Spend(120))
    task = await stage.task(HOURLY)
    await stage.work()

    await stage.answer(task, RAISE_ALLOWANCE)
    await stage.work()

    assert [run.status for run in stage.history(task)] == [RunStatus.SUCCESS]
    assert len(stage.engine.requests) == 2
    assert stage.load(task).status is Status.BACKGROUND


async def test_one_that_is_not_raised_ends_the_work(set_up: SetUp) -> None:
    stage = limited(set_up, AllowanceScope.RUN, 100)
    stage.engine.then(Spend(120))
    task = await stage.task(HOURLY)
    await stage.work()

    await stage.answer(task, STOP)
    await stage.work()

    assert stage.load(task).schedule is None
    assert [run.status for run in stage.history(task)] == [RunStatus.CANCELLED]


@requirement("B-budget")
async def test_one_question_parks_all_that_share_an_allowance_and_one_answer_frees_them(
    set_up: SetUp, clock: SetClock
) -> None:
    stage = limited(set_up, AllowanceScope.DAY, 100)
    stage.engine.then(Spend(120))
    first = await stage.task(HOURLY)
    await stage.work()
    clock.advance(timedelta(seconds=1))
    second = await stage.task(Interval(timedelta(hours=1), anchor=clock.now))
    await stage.work()
    assert len(stage.engine.requests) == 1
    assert stage.load(second).pause_reason is PauseReason.ALLOWANCE
    assert stage.load(second).questions == ()

    clock.advance(timedelta(seconds=1))
    await stage.answer(first, RAISE_ALLOWANCE)
    await stage.work()

    assert [stage.load(task).status for task in (first, second)] == [Status.BACKGROUND] * 2
    assert [run.status for run in stage.history(second)] == [RunStatus.SUCCESS]
    assert [run.status for run in stage.history(first)] == [RunStatus.SUCCESS]


async def test_a_raise_that_is_answered_late_does_not_undo_what_was_set_meanwhile(
    set_up: SetUp,
) -> None:
    stage = limited(set_up, AllowanceScope.DAY, 100)
    stage.engine.then(Spend(120))
    task = await stage.task(HOURLY)
    await stage.work()
    day = Allowance(AllowanceScope.DAY, tokens=1000)
    stage.database.run(lambda tx: tx.spending.set_allowance(USER, day, ConversationId("")))

    await stage.answer(task, RAISE_ALLOWANCE)
    await stage.work()

    found = stage.database.run(lambda tx: tx.spending.state(USER, ConversationId(""), []))
    assert list(found.allowances) == [day]
    assert [run.status for run in stage.history(task)] == [RunStatus.SUCCESS]


async def test_what_only_an_operator_can_raise_is_not_offered_to_be_raised(
    set_up: SetUp,
) -> None:
    stage = limited(set_up, AllowanceScope.DAY, 1000)
    ceiling = Allowance(AllowanceScope.DAY, tokens=100)
    stage.user(USER)
    stage.database.run(lambda tx: tx.spending.set_ceiling(USER, ceiling))
    stage.engine.then(Spend(120))
    task = await stage.task(HOURLY)

    await stage.work()

    question = stage.question(task)
    assert question.options == (TRY_AGAIN, WAIT_UNTIL_TOMORROW, STOP)
    assert "100 tokens. Only an operator can raise it." in question.prompt
    await stage.answer(task, TRY_AGAIN)
    await stage.work()
    assert stage.question(task).options == question.options

    stage.database.run(lambda tx: tx.spending.reset_ceiling(USER, AllowanceScope.DAY))
    await stage.answer(task, TRY_AGAIN)
    await stage.work()
    assert [run.status for run in stage.history(task)] == [RunStatus.SUCCESS]


async def test_what_is_to_wait_until_tomorrow_does(set_up: SetUp, clock: SetClock) -> None:
    stage = limited(set_up, AllowanceScope.DAY, 100)
    stage.engine.then(Spend(120))
    task = await stage.task(HOURLY)
    await stage.work()

    await stage.answer(task, WAIT_UNTIL_TOMORROW)
    clock.advance(timedelta(hours=11, minutes=59))
    await stage.work()
    assert len(stage.engine.requests) == 1
    clock.advance(timedelta(minutes=1))
    await stage.work()

    assert len(stage.engine.requests) >= 2
    assert stage.history(task)[-1].status is RunStatus.SUCCESS


async def test_what_children_spend_counts_to_the_conversation_at_the_top(set_up: SetUp) -> None:
    stage = limited(set_up, AllowanceScope.CONVERSATION, 100)
    top = await stage.chat()
    stage.engine.then(Spend(120))
    child = await stage.task(parent_id=top.id)
    await stage.work()
    # It is asked where all of it hangs together, and the child stands still.
    assert stage.question(top).purpose is Purpose.ALLOWANCE
    assert stage.load(child).pause_reason is PauseReason.ALLOWANCE
    await stage.say(top, "Hello?")

    await stage.work()

    # The reply is not given, and says why.
    assert any("has been spent" in text for text in stage.said(top))
    assert [run.kind for run in stage.history(top)] == [RunKind.REPLY]


async def test_an_answer_at_the_top_frees_all_that_hangs_under_it(set_up: SetUp) -> None:
    stage = limited(set_up, AllowanceScope.CONVERSATION, 100)
    top = await stage.chat()
    stage.engine.then(Spend(120))
    children = [await stage.task(parent_id=top.id) for _ in range(3)]
    await stage.work()
    assert [stage.load(child).pause_reason for child in children] == [PauseReason.ALLOWANCE] * 3
    assert len(stage.load(top).questions) == 1

    await stage.answer(top, RAISE_ALLOWANCE)
    await stage.work()

    assert stage.load(top).status is Status.ACTIVE
    for child in children:
        assert [run.status for run in stage.history(child)] == [RunStatus.SUCCESS]


async def test_to_stop_at_the_top_stops_all_that_hangs_under_it_and_nothing_else(
    set_up: SetUp,
) -> None:
    stage = limited(set_up, AllowanceScope.CONVERSATION, 100)
    children = []
    tops = [await stage.chat(), await stage.chat()]
    for top in tops:
        stage.engine.then(Spend(120))
        children += [await stage.task(HOURLY, parent_id=top.id) for _ in range(2)]
        await stage.work()

    await stage.answer(tops[0], STOP)
    await stage.work()

    found = [stage.load(child) for child in children]
    assert [one.ended_as for one in found] == [EndedAs.CANCELLED, EndedAs.CANCELLED, None, None]
    assert [one.pause_reason for one in found[2:]] == [PauseReason.ALLOWANCE] * 2


@pytest.mark.parametrize(
    "scope", [AllowanceScope.CONVERSATION, AllowanceScope.USER, AllowanceScope.DAY]
)
async def test_what_was_not_raised_is_asked_about_again_when_work_is_resumed(
    set_up: SetUp, scope: AllowanceScope
) -> None:
    stage = limited(set_up, scope, 100)
    stage.engine.then(Spend(120))
    task = await stage.task(HOURLY)
    await stage.work()
    first = stage.question(task)

    await control.pause(stage.deps, Origin.by_user(task.user_id), task.id)
    await control.resume(stage.deps, Origin.by_user(task.user_id), task.id)
    await stage.work()

    again = stage.question(task)
    assert (again.purpose, again.prompt) == (Purpose.ALLOWANCE, first.prompt)
    await stage.answer(task, STOP)
    other = await stage.task(HOURLY)
    await stage.work()
    asks = scope in (AllowanceScope.USER, AllowanceScope.DAY)
    assert bool(stage.load(other).questions) is asks


async def _pause(deps: Deps, user: UserId, conversation_id: ConversationId) -> None:
    await control.pause(deps, Origin.by_user(user), conversation_id)


@pytest.mark.parametrize("how", [_pause, conversations.archive, conversations.delete])
async def test_work_that_waits_for_an_answer_asks_itself_when_nobody_else_does_any_more(
    set_up: SetUp, how: Callable[..., Any]
) -> None:
    stage = limited(set_up, AllowanceScope.USER, 100)
    stage.engine.then(Spend(120))
    asking = await stage.task(HOURLY)
    await stage.work()
    waiting = await stage.task(HOURLY)
    await stage.work()
    assert stage.load(waiting).pause_reason is PauseReason.ALLOWANCE

    await how(stage.deps, asking.user_id, asking.id)
    await stage.work()

    assert stage.question(waiting).purpose is Purpose.ALLOWANCE
    assert len(stage.engine.requests) == 1


async def test_to_stop_for_a_day_lets_other_work_go_on_the_next(
    set_up: SetUp, clock: SetClock
) -> None:
    stage = limited(set_up, AllowanceScope.DAY, 100)
    stage.engine.then(Spend(120))
    first = await stage.task(HOURLY)
    await stage.work()
    second = await stage.task(HOURLY)
    await stage.work()

    await stage.answer(first, STOP)
    await stage.work()
    assert [run.status for run in stage.history(second)] == [RunStatus.QUEUED]
    clock.advance(timedelta(days=1))
    await stage.work()

    assert stage.history(second)[-1].status is RunStatus.SUCCESS
    assert stage.load(first).ended_as is EndedAs.CANCELLED


async def test_work_whose_parent_is_gone_counts_for_itself(set_up: SetUp) -> None:
    stage = limited(set_up, AllowanceScope.CONVERSATION, 100)
    orphan = await stage.task(parent_id=ConversationId("c_gone"))

    await stage.work()

    assert [run.status for run in stage.history(orphan)] == [RunStatus.SUCCESS]


async def test_a_reply_that_finds_nothing_left_says_so_and_is_served(set_up: SetUp) -> None:
    stage = limited(set_up, AllowanceScope.USER, 100)
    stage.engine.then(Spend(120), Say("Hello."))
    here = await stage.chat()
    await stage.say(here, "One.")
    await stage.work()

    await stage.say(here, "Two.")
    await stage.work()

    assert len(stage.engine.requests) == 1
    assert stage.said(here)[-1].startswith("I cannot continue now.")
    assert len(stage.load(here).questions) == 1


async def test_runs_at_the_same_time_do_not_spend_the_same_twice(set_up: SetUp) -> None:
    stage = limited(set_up, AllowanceScope.USER, 100_000)
    for _ in range(3):
        stage.engine.then(Call("slow"), Spend(60_000), Call("look"), Spend(60_000))
        await stage.task()
    await stage.take_up()
    stage.tools.let_go.set()

    await stage.idle()

    spent = sum(run.tokens for run in stage.database.run(_receipts))
    assert 100_000 <= spent <= 100_000 + 3 * 60_000
    assert stage.tools.count("look") <= 1


def _receipts(tx: Any) -> list[Any]:
    return list(tx.connection.execute(tables.spend.select()))


async def test_money_is_counted_where_a_price_is_known(set_up: SetUp) -> None:
    price = Price(input=1_000_000, output=2_000_000)
    stage = set_up(
        allowances=(Allowance(AllowanceScope.RUN, micros=300),),
        price_of=lambda model: find_price(model, {MODEL[:8]: price}),
    )
    stage.engine.then(Spend(100), Spend(100), Say("Never."))
    here = await stage.chat()
    await stage.say(here, "Hello?")

    await stage.work()

    (question,) = stage.load(here).questions
    assert "$0.00" in question.prompt
    assert [receipt.micros for receipt in stage.database.run(_receipts)] == [200, 200]
