"""Rows that somebody has locked hold up nobody else."""

import asyncio

import pytest
from sqlalchemy import TextClause, text
from support.doubles.engine import ScriptedEngine, Wait
from support.stage.make import MATE, USER
from support.stage.stage import Stage

from backburner.bus.local import LocalBus
from backburner.core.ids import UserId
from backburner.store.db import Database

LOCK_CONVERSATION = text("SELECT 1 FROM conversations WHERE id = :id FOR UPDATE")
LOCK = text("SELECT 1 FROM counters WHERE user_id = :user FOR UPDATE")
LOCK_USER = text("SELECT 1 FROM users WHERE id = :user FOR UPDATE")
OTHER = UserId("u_other")


async def test_a_user_whose_rows_are_locked_is_passed_over(emptied_postgres: Database) -> None:
    stage = Stage(emptied_postgres, LocalBus(), ScriptedEngine())
    locked, other = await stage.chat(), await stage.chat(MATE)
    await stage.say(locked, "First?")
    await stage.say(other, "Second?")

    with emptied_postgres.engine.begin() as holder:
        holder.execute(LOCK, {"user": USER})
        await asyncio.wait_for(stage.take_up(), 8)
        await stage.idle()

    assert (len(stage.said(locked)), len(stage.said(other))) == (1, 2)
    stage.claiming._passed_over.clear()
    await stage.work()
    assert len(stage.said(locked)) == 2


@pytest.mark.parametrize("locked", [USER, MATE, OTHER])
@pytest.mark.parametrize("lock", [LOCK, LOCK_USER], ids=["events", "user"])
async def test_others_who_are_claimed_with_a_locked_user_begin_all_the_same(
    emptied_postgres: Database, locked: UserId, lock: TextClause
) -> None:
    stage = Stage(emptied_postgres, LocalBus(), ScriptedEngine())
    tasks = {user: await stage.task(user=user) for user in (USER, MATE, OTHER)}

    with emptied_postgres.engine.begin() as holder:
        holder.execute(lock, {"user": locked})
        await asyncio.wait_for(stage.take_up(), 10)
        await stage.idle()

    ended = [user for user, task in tasks.items() if stage.load(task).ended_as]
    assert ended == [user for user in tasks if user != locked]
    assert set(stage.claiming._passed_over) <= {locked}


async def test_a_locked_conversation_keeps_no_other_run_from_its_lease(
    emptied_postgres: Database,
) -> None:
    stage = Stage(emptied_postgres, LocalBus(), ScriptedEngine([Wait()], [Wait()]))
    for _ in range(2):
        await stage.task()
    await stage.take_up()
    locked, free = stage.underway
    before = locked.lease_until, free.lease_until

    with emptied_postgres.engine.begin() as holder:
        holder.execute(LOCK_CONVERSATION, {"id": locked.claim.conversation.id})
        await asyncio.wait_for(stage.renew(), 5)

    assert (locked.lease_until, free.is_stopping) == (before[0], False)
    assert free.lease_until > before[1]
    assert not locked.is_stopping
    await stage.renew()
    assert locked.lease_until > before[0]
    stage.kill()
