"""Runs of several users that are committed together: each as if it were by itself."""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import select, update
from support.simulator.world import FlakyDatabase
from support.stage.scene import CLAIMER, DONE, Scene
from support.statements import watched

from backburner.core.conversation import Conversation, Destination
from backburner.core.errors import Fenced
from backburner.core.ids import UserId, new_conversation_id, new_run_id
from backburner.core.outcome import Complete
from backburner.core.run import RunKind, RunStatus, Turn
from backburner.core.schedule import After
from backburner.ports import Claim
from backburner.store import tables
from backburner.store.commit_groups import MAX_GROUP_SIZE, CommitGroups, RunCommit
from backburner.store.db import Database
from backburner.store.queue import turns
from backburner.store.tx import Tx
from backburner.store.writes import FollowerFound

USERS = [UserId(f"u_{name}") for name in ("ann", "ben", "cyd")]
BOUND = 20


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


def begin_work(scene: Scene, **brief: Any) -> list[Claim]:
    """Claim a task of each user."""
    for user in USERS:
        scene.task(user=user, **brief)
    claims = scene.run(lambda tx: tx.queue.claim(None, CLAIMER, limit=len(USERS)))
    assert [claim.turn.user_id for claim in claims] == USERS
    return list(claims)


async def commit_all(scene: Scene, claims: Sequence[Claim], how: Complete = DONE) -> list[Any]:
    """Commit at the same time: the first by itself, the others meanwhile; give their errors."""
    async with asyncio.timeout(BOUND):
        return await asyncio.gather(
            *(scene.database.commit(one.turn, scene.finishing(one, how)) for one in claims),
            return_exceptions=True,
        )


def group(scene: Scene, claims: Sequence[Claim]) -> list[RunCommit]:
    return [RunCommit(claim.turn, scene.finishing(claim)) for claim in claims]


def statuses(scene: Scene, claims: Sequence[Claim]) -> list[list[RunStatus]]:
    return [[run.status for run in scene.history(claim.conversation)] for claim in claims]


async def test_runs_that_end_at_the_same_time_are_all_committed(scene: Scene) -> None:
    claims = begin_work(scene, reports_to=(Destination("outside", "somebody"),))
    assert await commit_all(scene, claims) == [None] * 3

    assert statuses(scene, claims) == [[RunStatus.SUCCESS]] * 3
    assert [scene.load(claim.conversation).run_count for claim in claims] == [1, 1, 1]
    rows = scene.dump()
    for name in ("outcomes", "messages", "notices", "deliveries"):
        assert len(rows[name]) == 3


async def test_events_of_a_group_are_numbered_for_each_user(scene: Scene) -> None:
    claims = begin_work(scene)
    first = scene.run(lambda tx: {user: tx.events.latest(user) for user in USERS})
    scene.database.commit_group_here(group(scene, claims))

    new = scene.run(
        lambda tx: {user: tx.events.after(user, first[user], limit=9) for user in USERS}
    )
    for user, found in new.items():
        assert [change.number - first[user] for change in found] == [1, 2, 3, 4]
        assert [str(change.kind) for change in found] == [
            *("conversation", "message", "run", "notice"),
        ]


async def test_a_group_takes_as_many_statements_as_one_run(emptied_postgres: Database) -> None:
    scene = Scene(emptied_postgres)
    claims = begin_work(scene)
    with watched(emptied_postgres) as statements:
        assert emptied_postgres.commit_group_here(group(scene, claims)) == []

    assert len(statements) == 2  # rows are locked, and all is written


async def test_who_lost_its_turn_is_fenced_and_the_others_commit(scene: Scene) -> None:
    claims = begin_work(scene)
    take_over(scene, claims[2])
    before = scene.load(claims[2].conversation)
    errors = await commit_all(scene, claims)

    assert [type(error) for error in errors] == [type(None), type(None), Fenced]
    assert scene.load(claims[2].conversation) == before
    assert statuses(scene, claims) == [
        *([RunStatus.SUCCESS], [RunStatus.SUCCESS], [RunStatus.RUNNING]),
    ]


def take_over(scene: Scene, claim: Claim) -> None:
    changed = update(tables.conversations).where(tables.conversations.c.id == claim.conversation.id)
    epoch = tables.conversations.c.epoch + 1
    scene.run(lambda tx: tx.connection.execute(changed.values(epoch=epoch)))


async def test_a_run_whose_conversation_is_locked_is_left_out(postgres: Database) -> None:
    scene = Scene(postgres)
    claims = begin_work(scene)
    with closing(postgres.engine.connect()) as other:
        lock = select(tables.conversations).where(
            tables.conversations.c.id == claims[1].conversation.id
        )
        other.execute(lock.with_for_update())
        left = postgres.commit_group_here(group(scene, claims))

    assert [commit.turn for commit in left] == [claims[1].turn]
    assert statuses(scene, claims) == [
        *([RunStatus.SUCCESS], [RunStatus.RUNNING], [RunStatus.SUCCESS]),
    ]


async def test_work_that_is_scheduled_after_a_run_of_a_group_hears_of_it(scene: Scene) -> None:
    claims = begin_work(scene)
    first = claims[1].conversation
    scene.task(After(first.id, once=True), user=first.user_id)
    found: dict[UserId, tuple[object, ...]] = {}

    def finish(claim: Claim) -> Any:
        def work(tx: Tx) -> None:
            scene.finishing(claim)(tx)
            here: Conversation = claim.conversation
            found[here.user_id] = tx.conversations.followers(here.user_id, here.id)

        return work

    scene.database.commit_group_here([RunCommit(one.turn, finish(one)) for one in claims])
    assert [len(found[user]) for user in USERS] == [0, 1, 0]


async def test_a_follower_that_came_before_the_lock_and_after_the_snapshot_is_found(
    postgres: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement that locks a conversation may not see what is scheduled after it."""
    scene = Scene(postgres)
    claims = begin_work(scene)
    first = claims[0].conversation
    scene.task(After(first.id, once=True), user=first.user_id)
    hold_all = turns.Turns.hold_all
    found = list[int]()

    def hold_too_soon(self: Any, given: Sequence[Turn], **more: Any) -> Sequence[Turn]:
        held = hold_all(self, given, **more)
        self.tx.unfollowed.add((first.user_id, first.id))
        return held

    def finish(tx: Tx) -> None:
        scene.finishing(claims[0])(tx)
        found.append(len(tx.conversations.followers(first.user_id, first.id)))

    monkeypatch.setattr(turns.Turns, "hold_all", hold_too_soon)
    with pytest.raises(FollowerFound):
        postgres.commit_group_here([RunCommit(claims[0].turn, finish)])
    await postgres.commit(claims[0].turn, finish)

    assert found == [0, 0, 1]
    assert statuses(scene, claims[:1]) == [[RunStatus.SUCCESS]]


@pytest.mark.parametrize("breaks", ["before", "after"])
async def test_a_lost_answer_is_asked_for_by_each(
    database: Database, breaks: str, scene: Scene
) -> None:
    claims = begin_work(scene)
    with closing(FlakyDatabase(database.engine, scene.clock)) as flaky:
        groups = CommitGroups(together=flaky._commit_together, alone=flaky._commit_alone)
        commits = group(scene, claims)
        flaky.breaks = (breaks,)
        await groups._commit(commits, asyncio.get_running_loop().call_later(BOUND, bool))
        for commit in commits:
            await commit.done

    assert statuses(scene, claims) == [[RunStatus.SUCCESS]] * 3
    assert [scene.load(claim.conversation).run_count for claim in claims] == [1, 1, 1]


async def test_a_group_without_its_guards_would_be_noticed(
    postgres: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hold_any(self: Any, given: Sequence[Turn]) -> Sequence[Turn]:
        by_id = turns._with_run.where(turns._by_id)
        for turn in given:
            self._held[turn] = self.connection.execute(by_id, turns.turn_key(turn)).one()
        return given

    values = dict(turns._commit._values or {})
    unguarded = update(tables.conversations).where(turns._by_id).values(values)
    monkeypatch.setattr(turns, "_commit", unguarded)
    monkeypatch.setattr(turns.Turns, "hold_all", hold_any)

    with pytest.raises(AssertionError):
        await test_who_lost_its_turn_is_fenced_and_the_others_commit(Scene(postgres))


class Recorder:
    """Commits nothing; each transaction lasts until all may go on."""

    def __init__(self) -> None:
        self.together: list[list[str]] = []
        self.began_group = asyncio.Event()
        self.alone: list[str] = []
        self.goes_on = asyncio.Event()
        self.failure: Exception | None = None
        self.groups = CommitGroups(together=self._together, alone=self._alone)

    async def commit(self, *users: str) -> list[BaseException | None]:
        waiting = asyncio.gather(
            *(self.groups.commit(commit_of(user)) for user in users), return_exceptions=True
        )
        await asyncio.sleep(0)
        self.goes_on.set()
        return await waiting

    async def _together(self, commits: Sequence[RunCommit]) -> Sequence[RunCommit]:
        self.together.append([commit.turn.user_id for commit in commits])
        self.began_group.set()
        await self.goes_on.wait()
        if self.failure:
            raise self.failure
        return ()

    async def _alone(self, commit: RunCommit) -> None:
        self.alone.append(commit.turn.user_id)
        await self.goes_on.wait()


def commit_of(user: str) -> RunCommit:
    turn = Turn(UserId(user), new_conversation_id(), new_run_id(), 1, RunKind.BACKGROUND)
    return RunCommit(turn, lambda _tx: None)


async def test_a_group_has_one_run_of_a_user() -> None:
    recorder = Recorder()
    await recorder.commit("u_0", "u_1", "u_1", "u_2", "u_1")

    assert recorder.together == [["u_1", "u_2"]]
    assert recorder.alone == ["u_0", "u_1", "u_1"]


async def test_a_group_has_no_more_than_so_many_runs() -> None:
    recorder = Recorder()
    await recorder.commit("u_first", *(f"u_{number}" for number in range(MAX_GROUP_SIZE + 2)))

    assert [len(group) for group in recorder.together] == [MAX_GROUP_SIZE, 2]


async def test_a_transaction_that_takes_long_holds_up_no_other() -> None:
    recorder = Recorder()
    stuck = asyncio.create_task(recorder.groups.commit(commit_of("u_stuck")))
    await asyncio.sleep(0)
    waiting = [
        asyncio.create_task(recorder.groups.commit(commit_of(user))) for user in ("u_1", "u_2")
    ]
    async with asyncio.timeout(BOUND):
        await recorder.began_group.wait()
    assert not stuck.done()

    recorder.goes_on.set()
    await asyncio.gather(stuck, *waiting)


async def test_each_of_a_group_that_fails_is_tried_by_itself() -> None:
    recorder = Recorder()
    recorder.failure = RuntimeError("One of them is odd.")
    assert await recorder.commit("u_0", "u_1", "u_2") == [None] * 3

    assert recorder.alone == ["u_0", "u_1", "u_2"]


async def test_a_commit_that_nobody_waits_for_any_more_takes_place_all_the_same() -> None:
    recorder = Recorder()
    waiting = [
        asyncio.create_task(recorder.groups.commit(commit_of(user)))
        for user in ("u_0", "u_1", "u_2")
    ]
    await asyncio.sleep(0)
    waiting[1].cancel()
    recorder.goes_on.set()
    await asyncio.wait(waiting)

    assert recorder.together == [["u_1", "u_2"]]
    assert waiting[2].done()
