"""The history of work: its runs with their reports and costs, page by page, and never another's."""

import pytest
from support.doubles.engine import MODEL, End, Fail, ScriptedEngine, Spend, Wait
from support.stage.make import STRANGER, USER
from support.stage.stage import Stage

from backburner.actions.origin import Origin
from backburner.actions.work import control, run_pages, schedule_choices
from backburner.bus.local import LocalBus
from backburner.core.allowance import Price
from backburner.core.conversation import Conversation
from backburner.core.errors import EngineFailed, NotFound
from backburner.core.run import RunStatus
from backburner.core.schedule import After, Cron
from backburner.store.db import Database

MONDAYS = Cron("33 3 * * 1", "UTC")
PRICES = {MODEL: Price(input=0, output=1_000_000)}


@pytest.fixture
def stage(database: Database) -> Stage:
    return Stage(database, LocalBus(), ScriptedEngine(), price_of=PRICES.get)


async def run(stage: Stage, task: Conversation, *steps: object) -> None:
    stage.engine.then(*steps)  # type: ignore[arg-type]
    await control.run_now(stage.deps, Origin.by_user(USER), task.id)
    await stage.work()


async def test_runs_are_listed_with_what_came_of_them(stage: Stage) -> None:
    task = await stage.task(MONDAYS)
    await run(stage, task, Spend(7), End({"complete": True, "message": "**14** mails."}))
    await run(stage, task, End({"complete": True, "result": "7"}))
    await run(stage, task, Fail(EngineFailed("It broke.")))
    await stage.say(task, "Thanks.")
    await stage.work()

    page = await run_pages.history(stage.deps, USER, task.id, None, limit=10)

    assert [one.run.status for one in page.items] == [
        RunStatus.FAILURE,
        RunStatus.SUCCESS,
        RunStatus.SUCCESS,
    ]
    # A message in one line of plain text; a reply is no run of the work.
    assert [one.message for one in page.items][1:] == [None, "14 mails."]
    assert [one.is_quiet for one in page.items][1:] == [True, False]
    assert [one.spent.tokens for one in page.items] == [0, 0, 7]
    assert page.next_key is None


async def test_pages_follow_each_other_and_a_first_page_can_grow(stage: Stage) -> None:
    task = await stage.task(MONDAYS)
    for number in range(5):
        await run(stage, task, End({"complete": True, "message": f"Number {number}."}))

    async def texts(*after: object, **more: object) -> tuple[list[str | None], object]:
        page = await run_pages.history(stage.deps, USER, task.id, *after, **more)  # type: ignore[arg-type]
        return [one.message for one in page.items], page.next_key

    first, key = await texts(None, limit=2)
    second, next_key = await texts(key, limit=2)
    last, end = await texts(next_key, limit=2)
    assert (first, second, last) == (
        ["Number 4.", "Number 3."],
        ["Number 2.", "Number 1."],
        ["Number 0."],
    )
    assert end is None

    await run(stage, task, End({"complete": True, "message": "New."}))
    # The pages that follow stay where they are.
    assert await texts(None, limit=10, down_to=key) == (["New.", *first], key)


async def test_a_run_in_progress_says_what_it_does(stage: Stage) -> None:
    task = await stage.task(MONDAYS)
    stage.engine.then(Wait())
    await control.run_now(stage.deps, Origin.by_user(USER), task.id)
    await stage.take_up()

    (only,) = (await run_pages.history(stage.deps, USER, task.id, None, limit=5)).items
    assert (only.run.status, only.doing, only.is_quiet) == (RunStatus.RUNNING, "thinking", False)
    stage.kill()


async def test_what_is_anothers_is_not_found(stage: Stage) -> None:
    task = await stage.task(MONDAYS)
    stage.user(STRANGER)
    with pytest.raises(NotFound):
        await run_pages.history(stage.deps, STRANGER, task.id, None, limit=5)
    with pytest.raises(NotFound):
        await schedule_choices.load_choices(stage.deps, STRANGER, task.id)


async def test_the_choices_name_other_work_and_never_a_circle(stage: Stage) -> None:
    first = await stage.task(MONDAYS, title="First")
    second = await stage.task(After(first.id), title="Second")
    chat = await stage.chat()
    await stage.say(chat, "Watch the flats in Porto.")

    of_chat = await schedule_choices.load_choices(stage.deps, USER, chat.id)
    of_first = await schedule_choices.load_choices(stage.deps, USER, first.id)
    of_second = await schedule_choices.load_choices(stage.deps, USER, second.id)

    assert {one.title for one in of_chat.others} == {"First", "Second"}
    assert of_chat.last_request == "Watch the flats in Porto."
    assert (of_chat.after, of_first.after, of_second.after) == (None, None, "First")
    assert list(of_first.others) == []
    assert [one.title for one in of_second.others] == ["First"]
    assert of_first.last_request == ""
    await control.cancel_and_archive(stage.deps, Origin.by_user(USER), first.id)
    assert await schedule_choices.load_predecessor(stage.deps, second) == "First"
    assert await schedule_choices.load_predecessor(stage.deps, first) is None
