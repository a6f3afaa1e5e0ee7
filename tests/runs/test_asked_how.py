"""A question about work is answered from facts that stand in the prompt of the reply."""

from datetime import timedelta

import pytest
from sqlalchemy import update
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End, Fail, Say, ScriptedEngine
from support.requirements import requirement
from support.stage.make import MATE, NOON, USER
from support.stage.stage import Stage, prompts
from support.stage.until import until
from support.statements import watched

from backburner.bus.local import LocalBus
from backburner.core.conversation import Conversation
from backburner.core.errors import EngineFailed
from backburner.core.prompt import WORK_TITLE
from backburner.core.schedule import Interval
from backburner.core.work.facts import MAX_CHILDREN
from backburner.store import tables
from backburner.store.db import Database

HOUR = timedelta(hours=1)
EVERY_HOUR = Interval(HOUR, anchor=NOON)
LATER = Interval(24 * HOUR, anchor=NOON + HOUR)
GREEN = End({"complete": True, "message": "CI is green."})
ASKS = End(
    {
        "needs_input": True,
        "message": "I cannot go on.",
        "question": {"type": "input", "prompt": "Which branch?"},
    }
)


@pytest.fixture
def stage(database: Database) -> Stage:
    return Stage(database, LocalBus(), ScriptedEngine(otherwise=lambda _: [Say("Well.")]))


async def asked(stage: Stage, chat: Conversation, text: str = "How is it going?") -> str:
    """Ask in a chat, and return the facts in the request that the model gets."""
    await stage.say(chat, text)
    await stage.take_up()
    await until(lambda: any(text in prompt for prompt in prompts(stage.engine, chat.id)))
    request = prompts(stage.engine, chat.id)[-1]
    before, title, facts = request.partition(f"# {WORK_TITLE}\n")
    assert not (title and before)
    return facts.partition("\n\n# ")[0]


def set_zone(stage: Stage, zone: str) -> None:
    change = update(tables.users).where(tables.users.c.id == USER).values(zone=zone)
    stage.database.run(lambda tx: tx.connection.execute(change))


@requirement("B-asked-how")
async def test_a_reply_knows_how_the_tasks_of_its_chat_are_going(
    stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    set_zone(stage, "Europe/Berlin")
    stage.engine.then(GREEN)
    task = await stage.task(EVERY_HOUR, title="check-ci", parent_id=chat.id)
    await stage.work()
    clock.advance(timedelta(minutes=5))

    facts = await asked(stage, chat, "How is the CI task going?")
    await stage.idle()

    line, *quoted = facts.splitlines()
    assert line == (
        f"- Task 'check-ci' ({task.id}): active."
        " Next run: Mon 16 Nov 2026, 14:00 CET (Europe/Berlin)."
        " Last run: success, ended Mon 16 Nov 2026, 13:00 CET."
    )
    opened, text, closed = quoted
    assert opened.startswith("<outside ")
    assert text == "CI is green."
    assert closed.startswith("</outside ")


@requirement("B-asked-how")
async def test_a_reply_knows_what_runs_now_what_failed_and_what_waits_for_an_answer(
    stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    stage.engine.then(Fail(EngineFailed("The model is down.", permanent=True)))
    await stage.task(EVERY_HOUR, title="failed", parent_id=chat.id)
    await stage.work()
    clock.advance(timedelta(seconds=1))
    stage.engine.then(ASKS)
    await stage.task(title="asking", parent_id=chat.id)
    await stage.work()
    clock.advance(timedelta(seconds=1))
    stage.engine.then(Call("slow", {"at": "CI", "token": "hunter2"}))
    await stage.task(title="running", parent_id=chat.id)
    await stage.take_up()
    await stage.tools.started["slow"].wait()

    facts = await asked(stage, chat)
    stage.tools.let_go.set()
    await stage.idle()

    running, asking, failed = facts.split("- Task ")[1:]
    assert running.startswith("'running'")
    assert "It runs now, since Mon 16 Nov 2026, 12:00:02 UTC." in running
    # It has called a tool that may return outside text.
    assert "Its texts may contain outside text" in running
    assert "hunter2" not in running
    assert "It waits for the user's answer to a question." in asking
    assert "\nWhich branch?\n</outside " in asking
    assert "Last run: failure" in failed
    assert "\nThe model is down.\n</outside " in failed


@requirement("B-asked-how")
async def test_a_reply_knows_the_work_of_its_own_conversation_and_nobody_elses(
    stage: Stage, clock: SetClock
) -> None:
    chat, other = await stage.chat(), await stage.chat()
    theirs = await stage.chat(MATE)
    await stage.task(EVERY_HOUR, parent_id=other.id)
    await stage.task(EVERY_HOUR, user=MATE, parent_id=theirs.id)
    stage.engine.then(GREEN)
    task = await stage.task(EVERY_HOUR)
    await stage.work()
    clock.advance(timedelta(minutes=5))

    assert await asked(stage, chat) == ""
    own = await asked(stage, task)
    await stage.idle()

    assert own.startswith("- This conversation: active. Next run: Mon 16 Nov 2026, 13:00 UTC.")
    assert own.count("\n- ") == 0


async def test_facts_about_work_that_read_outside_text_do_not_mark_a_chat(stage: Stage) -> None:
    chat = await stage.chat()
    # Not due yet: its reports would be outside text by themselves.
    task = await stage.task(LATER, parent_id=chat.id)

    is_task = tables.conversations.c.id == task.id
    marked = update(tables.conversations).where(is_task).values(outside_read=True)
    stage.database.run(lambda tx: tx.connection.execute(marked))
    assert task.id in await asked(stage, chat)
    await stage.idle()

    assert not stage.load(chat).outside_read


async def test_the_children_with_work_to_do_come_first_and_the_rest_is_counted(
    stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    await stage.task(LATER, title="standing", parent_id=chat.id)
    for number in range(MAX_CHILDREN + 2):
        clock.advance(timedelta(seconds=1))
        stage.engine.then(GREEN)
        await stage.task(title=f"once {number}", parent_id=chat.id)
        await stage.work()

    lines = [line for line in (await asked(stage, chat)).splitlines() if line.startswith("- ")]
    await stage.idle()

    assert len(lines) == MAX_CHILDREN + 1
    assert "'standing'" in lines[0]
    assert f"'once {MAX_CHILDREN + 1}'" in lines[1]
    assert lines[-1].startswith("- 3 more")


async def test_facts_take_one_statement_and_none_where_there_is_no_work(
    stage: Stage,
) -> None:
    chat, parent = await stage.chat(), await stage.chat()
    await stage.task(EVERY_HOUR, parent_id=parent.id)
    await stage.work()

    async def reads(conversation: Conversation) -> list[str]:
        with watched(stage.database) as seen:
            await asked(stage, conversation)
            await stage.idle()
        return [statement for statement, _ in seen if "AS run_message" in statement]

    assert len(await reads(parent)) == 1
    assert len(await reads(chat)) == 0


async def test_a_background_run_is_given_no_facts(stage: Stage) -> None:
    task = await stage.task(EVERY_HOUR)
    await stage.task(EVERY_HOUR, parent_id=task.id)
    await stage.work()

    assert all(WORK_TITLE not in request for request in prompts(stage.engine, task.id))
