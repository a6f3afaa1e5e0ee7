"""A deleted conversation is gone at once, can be restored for a while, and is then removed."""

from datetime import timedelta

import pytest
from sqlalchemy import select
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End
from support.stage.make import NOON, USER
from support.stage.stage import Stage
from support.stage.until import until

from backburner.actions import away, browse, conversations, questions
from backburner.actions.accounts import profile
from backburner.actions.work import deletion, job_trees, run_pages
from backburner.actions.work.deletion import UNDO_TIME
from backburner.core import transitions
from backburner.core.conversation import Conversation, EndedAs, PauseReason, Status
from backburner.core.errors import Conflict, NotFound
from backburner.core.ids import new_conversation_id
from backburner.core.run import RunStatus
from backburner.core.schedule import After, Immediate, Interval
from backburner.core.transitions import Brief
from backburner.ports import ConversationFilter
from backburner.store import tables
from backburner.worker.remover import Remover

HOUR = timedelta(hours=1)
HOURLY = Interval(HOUR, anchor=NOON)
ASKS = End(
    {"needs_input": True, "message": "Hm.", "question": {"type": "input", "prompt": "Which?"}}
)


async def delete(stage: Stage, of: Conversation) -> None:
    await deletion.delete(stage.deps, of.user_id, of.id)


async def restore(stage: Stage, of: Conversation) -> Conversation:
    return await deletion.restore(stage.deps, of.user_id, of.id)


async def listed(stage: Stage, *, archived: bool | None = None) -> set[str]:
    wanted = ConversationFilter(archived=archived)
    page, _ = await browse.conversations(stage.deps, USER, wanted, None, limit=50)
    return {row.conversation.id for row in page.items}


def rows_of(stage: Stage, of: Conversation) -> int:
    statement = select(tables.conversations.c.id).where(tables.conversations.c.id == of.id)
    return len(stage.database.run(lambda tx: tx.connection.execute(statement).all()))


async def test_what_was_deleted_is_gone_and_comes_back_without_its_work(
    stage: Stage, clock: SetClock
) -> None:
    task = await stage.task(HOURLY)
    await stage.work()
    job = await stage.task(HOURLY, parent_id=task.id)
    ran = stage.history(task)[0].id
    clock.advance(timedelta(seconds=1))

    await delete(stage, task)

    assert await listed(stage) == await listed(stage, archived=True) == set()
    for one in (task, job):
        with pytest.raises(NotFound):
            stage.load(one)
    with pytest.raises(NotFound):
        await run_pages.load_page(stage.deps, USER, ran)
    assert stage.history(task)
    clock.advance(UNDO_TIME - timedelta(seconds=1))
    await Remover(stage.deps).run_once()

    restored = await restore(stage, task)

    assert await listed(stage) == {task.id, job.id}
    assert (restored.status, restored.schedule) == (Status.ACTIVE, None)
    assert restored.ended_as is EndedAs.CANCELLED
    assert "stays stopped" in stage.said(task)[-1]
    clock.advance(2 * HOUR)
    await stage.work()
    assert len(stage.engine.requests) == 1
    with pytest.raises(NotFound):
        await restore(stage, task)


async def test_what_was_deleted_is_on_no_page_of_work(stage: Stage, clock: SetClock) -> None:
    task = await stage.task(HOURLY)
    clock.advance(timedelta(seconds=1))
    await stage.work()
    brief = Brief(title="Part", prompt="Do it.", schedule=Immediate(), parent_id=task.id)
    stage.database.run(
        lambda tx: tx.conversations.add(
            transitions.start_job(new_conversation_id(), USER, brief, now=tx.now)
        )
    )
    await stage.work()

    async def shown() -> list[int]:
        trees = await job_trees.trees(stage.deps, USER, None)
        absence = await away.summarise(stage.deps, USER)
        runs = await run_pages.listed(stage.deps, USER, None, None, limit=9)
        spent = await profile.spend_statement(stage.deps, USER)
        return [len(trees.trees), len(absence.lanes), len(runs.items), len(spent.top)]

    before = await shown()
    await delete(stage, task)
    gone = await shown()
    await restore(stage, task)

    assert before[:3] == [1, 2, 2]
    assert gone == [0, 0, 0, 0]
    assert await shown() == before


async def test_what_was_deleted_is_removed_after_a_while_by_whichever_worker_is_there(
    stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    child = await stage.task(HOURLY, parent_id=chat.id)
    await delete(stage, chat)
    clock.advance(UNDO_TIME)

    # Nothing is known but what is stored.
    assert not await Remover(stage.deps).run_once()

    assert rows_of(stage, chat) == rows_of(stage, child) == 0
    with pytest.raises(NotFound):
        await restore(stage, chat)


async def test_a_run_in_progress_is_stopped_and_its_end_is_kept(
    stage: Stage, clock: SetClock
) -> None:
    stage.engine.then(Call("slow"))
    task = await stage.task(HOURLY)
    await stage.take_up()
    await until(lambda: len(stage.tools.calls) == 1)

    await delete(stage, task)
    await stage.renew()
    stage.tools.let_go.set()
    await stage.idle()

    assert [run.status for run in stage.history(task)] == [RunStatus.CANCELLED]
    restored = await restore(stage, task)
    assert (restored.status, restored.ended_as) == (Status.ACTIVE, EndedAs.CANCELLED)
    clock.advance(2 * HOUR)
    await stage.work()
    assert len(stage.history(task)) == 1


async def test_questions_are_withdrawn_and_notices_come_back(stage: Stage) -> None:
    stage.engine.then(ASKS)
    task = await stage.task()
    await stage.work()
    asked = stage.question(task)
    assert await _notices(stage) == ["Which?"]

    await delete(stage, task)

    assert (await browse.questions(stage.deps, USER, None, limit=9)).items == []
    with pytest.raises(NotFound):
        await browse.question(stage.deps, USER, asked.id)
    with pytest.raises(NotFound):
        await questions.answer(stage.deps, USER, asked.id, "main")
    assert await _notices(stage) == []
    restored = await restore(stage, task)
    assert restored.questions == ()
    assert await _notices(stage) == ["Which?"]
    assert any("It was withdrawn" in text for text in stage.said(task))


async def test_what_was_archived_is_archived_again(stage: Stage) -> None:
    chat = await stage.chat()
    await conversations.archive(stage.deps, USER, chat.id)

    await delete(stage, chat)
    restored = await restore(stage, chat)

    assert restored.status is Status.ARCHIVED
    assert stage.said(chat)[-1] == "Restored."


async def test_only_what_was_deleted_itself_is_restored_and_not_before_its_parent(
    stage: Stage, clock: SetClock
) -> None:
    parent = await stage.chat()
    first, second = (
        await stage.task(HOURLY, parent_id=parent.id),
        await stage.task(HOURLY, parent_id=parent.id),
    )
    await delete(stage, first)
    clock.advance(timedelta(seconds=10))
    await delete(stage, parent)

    for child in (first, second):
        with pytest.raises(Conflict, match="belongs to"):
            await restore(stage, child)

    await restore(stage, parent)
    assert await listed(stage) == {parent.id, second.id}
    await restore(stage, first)
    assert await listed(stage) == {parent.id, first.id, second.id}


async def test_a_child_deleted_before_its_parent_is_removed_with_it(
    stage: Stage, clock: SetClock
) -> None:
    parent = await stage.chat()
    child = await stage.task(HOURLY, parent_id=parent.id)
    await delete(stage, child)
    await delete(stage, parent)
    clock.advance(UNDO_TIME)

    await Remover(stage.deps).run_once()

    assert rows_of(stage, parent) == rows_of(stage, child) == 0


async def test_a_parent_deleted_at_once_takes_what_was_deleted_before(stage: Stage) -> None:
    parent = await stage.chat()
    child = await stage.task(HOURLY, parent_id=parent.id)
    await delete(stage, child)

    await conversations.delete(stage.deps, USER, parent.id)

    assert rows_of(stage, parent) == rows_of(stage, child) == 0


async def test_what_is_scheduled_after_a_deleted_task_is_paused(stage: Stage) -> None:
    task = await stage.task(HOURLY)
    follower = await stage.task(After(task.id))

    await delete(stage, task)
    paused = stage.load(follower)
    await restore(stage, task)

    assert paused.pause_reason is PauseReason.USER
    assert stage.load(follower).pause_reason is PauseReason.USER


async def test_a_deleted_conversation_cannot_be_deleted_again(
    stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    await delete(stage, chat)
    clock.advance(timedelta(seconds=20))

    with pytest.raises(NotFound):
        await delete(stage, chat)
    with pytest.raises(NotFound):
        await conversations.delete(stage.deps, USER, chat.id)

    clock.advance(timedelta(seconds=10))
    await Remover(stage.deps).run_once()
    assert rows_of(stage, chat) == 0


async def test_one_time_work_that_was_due_is_not_claimed(stage: Stage) -> None:
    task = await stage.task(Immediate())
    await stage.say(task, "Hello?")
    await delete(stage, task)

    await stage.work()
    await restore(stage, task)
    await stage.work()

    assert stage.engine.requests == []


async def test_more_than_a_batch_is_removed_in_several_rounds(
    stage: Stage, clock: SetClock
) -> None:
    chats = [await stage.chat() for _ in range(21)]
    for chat in chats:
        await delete(stage, chat)
    clock.advance(UNDO_TIME)

    remover = Remover(stage.deps)
    assert await remover.run_once()
    assert not await remover.run_once()
    assert not any(rows_of(stage, chat) for chat in chats)


async def _notices(stage: Stage) -> list[str]:
    page = await browse.notices(stage.deps, USER, None, unseen=False, limit=9)
    return [notice.text for notice in page.items]
