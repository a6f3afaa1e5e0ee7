"""What becomes of a run whose holder went away."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from sqlalchemy import func, insert, select

from backburner.core import transitions
from backburner.core.conversation import Destination, EndedAs, MessageRole, PauseReason, Status
from backburner.core.run import FailureKind, RunKind, RunStatus
from backburner.core.schedule import Event, Interval
from backburner.ports import Claim
from backburner.store import tables
from support.stage.make import NOON, USER
from support.stage.scene import LEASE, Scene

DAILY = Interval(timedelta(days=1), anchor=NOON)


def a_turn_whose_lease_ran_out_is_not_free_until_it_is_rescued(scene: Scene) -> None:
    task = scene.task(DAILY)
    dead = scene.begin_work()
    scene.say(task)
    scene.clock.advance(LEASE)
    assert scene.rescue() is None
    scene.clock.advance(timedelta.resolution)
    assert scene.claim_work() is None
    assert scene.claim_reply() is None

    assert scene.rescue() == dead.turn

    assert scene.rescue() is None
    assert scene.begin_reply().turn.epoch == dead.turn.epoch + 2


def a_run_whose_holder_went_away_has_crashed_and_its_work_is_given_again(scene: Scene) -> None:
    task = scene.task(DAILY)
    dead = scene.begin_work()
    scene.crash(dead)

    (run,) = scene.history(task)
    assert (run.status, run.ended_at) == (RunStatus.FAILURE, scene.clock.now)
    assert run.failure
    assert run.failure.kind is FailureKind.CRASHED
    assert (scene.load(task).crashes, scene.load(task).failures) == (1, 0)
    again = scene.begin_work()
    assert again.run.id != dead.run.id
    scene.finish(again)
    assert scene.load(task).crashes == 0


def the_third_crash_in_a_row_pauses_recurring_work_and_says_so_once(scene: Scene) -> None:
    task = scene.task(DAILY, reports_to=(Destination("discord", "somebody"),))
    for _ in range(3):
        assert scene.load(task).pause_reason is None
        scene.crash(scene.begin_work())

    found = scene.load(task)
    assert (found.status, found.pause_reason) == (Status.ACTIVE, PauseReason.CRASHES)
    assert scene.claim_work() is None
    told = select(func.count()).select_from(tables.deliveries)
    assert scene.run(lambda tx: tx.connection.execute(told).scalar_one()) == 1


def the_third_crash_in_a_row_ends_one_time_work_in_error(scene: Scene) -> None:
    task = scene.task()
    for _ in range(3):
        scene.crash(scene.begin_work())

    found = scene.load(task)
    assert (found.status, found.ended_as, found.schedule) == (Status.ACTIVE, EndedAs.ERROR, None)


def items_of_a_run_that_crashed_wait_for_the_next(scene: Scene) -> None:
    task = scene.task(Event("file", {}))
    scene.change(task, lambda found: transitions.receive_event(found, {"n": 1}))
    dead = scene.begin_work()
    loaded = scene.items(dead)
    scene.crash(dead)

    assert scene.items(scene.begin_work()) == loaded


def a_reply_that_crashed_is_given_again_and_the_third_time_says_sorry(scene: Scene) -> None:
    chat = scene.chat()
    scene.say(chat)
    for _ in range(3):
        assert len(scene.waiting(chat, RunKind.REPLY)) == 1
        scene.crash(scene.begin_reply())

    assert scene.waiting(chat, RunKind.REPLY) == ()
    assert scene.claim_reply() is None
    said = scene.run(lambda tx: tx.messages.recent(USER, chat.id, limit=10))
    assert [message.role for message in said] == [MessageRole.USER, MessageRole.SYSTEM]


def crashes_of_replies_count_only_in_a_row(scene: Scene) -> None:
    chat = scene.chat()
    for _ in range(2):
        scene.say(chat)
        for _ in range(2):
            scene.crash(scene.begin_reply())
        claim = scene.begin_reply()
        scene.finish(claim, "Hello.", served=scene.items(claim))

    said = scene.run(lambda tx: tx.messages.recent(USER, chat.id, limit=10))
    assert [message.role for message in said] == [MessageRole.USER, MessageRole.ASSISTANT] * 2


def a_crashed_reply_leaves_the_facts_of_the_work_alone(scene: Scene) -> None:
    task = scene.task(DAILY)
    scene.say(task)
    for _ in range(3):
        scene.crash(scene.begin_reply())

    assert scene.load(task) == task


def calls_under_way_when_a_run_crashed_are_in_doubt(scene: Scene) -> None:
    scene.task()
    dead = scene.begin_work()
    _call(scene, dead, "under way", "started")
    _call(scene, dead, "made", "done")
    scene.clock.advance(timedelta(seconds=1))
    scene.task()
    _call(scene, scene.begin_work(), "another's", "started")
    scene.clock.advance(LEASE)

    assert scene.rescue() == dead.turn

    calls = tables.tool_calls.c
    found = scene.run(
        lambda tx: tx.connection.execute(select(calls.id, calls.state, calls.ended_at)).all()
    )
    assert sorted(tuple(row) for row in found) == [
        ("another's", "started", None),
        ("made", "done", NOON),
        ("under way", "unknown", scene.clock.now),
    ]


def a_run_to_be_cancelled_whose_holder_went_away_is_cancelled(scene: Scene) -> None:
    task = scene.task(DAILY)
    dead = scene.begin_work()
    scene.change(task, lambda found: transitions.cancel(found, now=NOON))
    scene.crash(dead)

    (run,) = scene.history(task)
    assert (run.status, run.failure) == (RunStatus.CANCELLED, None)
    found = scene.load(task)
    assert (found.ended_as, found.crashes) == (EndedAs.CANCELLED, 0)
    assert scene.claim_work() is None


def of_rescuers_that_race_one_frees_the_turn(scene: Scene) -> None:
    scene.task(DAILY)
    dead = scene.begin_work()
    scene.clock.advance(2 * LEASE)

    with ThreadPoolExecutor(4) as rescuers:
        freed = list(rescuers.map(lambda _: scene.rescue(), range(8)))

    assert [turn for turn in freed if turn] == [dead.turn]
    assert scene.begin_work().turn.epoch == dead.turn.epoch + 2


def _call(scene: Scene, claim: Claim, name: str, state: str) -> None:
    row = {
        "id": name,
        "user_id": claim.turn.user_id,
        "conversation_id": claim.turn.conversation_id,
        "run_id": claim.run.id,
        "epoch": claim.run.epoch,
        "server": "backburner",
        "tool": "run_command",
        "arguments": "{}",
        "digest": "",
        "read_only": False,
        "state": state,
        "started_at": NOON,
        "ended_at": None if state == "started" else NOON,
    }
    scene.run(lambda tx: tx.connection.execute(insert(tables.tool_calls), row))
