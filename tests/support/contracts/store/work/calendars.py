"""Work with a schedule, and runs and questions of a period, are read as they are."""

from datetime import timedelta
from functools import partial

from backburner.core import transitions
from backburner.core.conversation import PauseReason
from backburner.core.ids import QuestionId
from backburner.core.run import RunStatus
from backburner.core.schedule import After, Immediate, Interval
from backburner.core.transitions import Brief, Step
from backburner.core.transitions.shared_changes import pause_work
from backburner.ports import PlannedWork, RunBar
from support.stage import make
from support.stage.make import MATE, NOON, USER
from support.stage.scene import Scene

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


def whatever_has_a_schedule_is_planned_by_its_next_time(scene: Scene) -> None:
    later = scene.task(Interval(HOUR, anchor=NOON + 2 * HOUR))
    soon = scene.task(Interval(HOUR, anchor=NOON + HOUR))
    after = scene.task(After(soon.id))
    paused = scene.task(Interval(HOUR, anchor=NOON + HOUR))
    scene.change(paused, lambda found: Step(conversation=pause_work(found, PauseReason.USER)))
    scene.chat()
    scene.task(user=MATE)
    proposed = Brief(title="Idea", prompt="Do it.", schedule=Immediate(), parent_id=later.id)
    scene.add(transitions.propose(make.OTHER, USER, proposed, why="It helps.", now=scene.clock.now))

    planned = scene.run(lambda tx: tx.tasks.planned(USER, limit=9))
    first = scene.run(lambda tx: tx.tasks.planned(USER, limit=1))

    assert [one.conversation.id for one in planned[:2]] == [soon.id, later.id]
    assert {one.conversation.id for one in planned[2:]} == {after.id, paused.id}
    assert first == planned[:1]
    assert not any(one.is_running for one in planned)


def work_that_runs_is_planned_as_such(scene: Scene) -> None:
    scene.task(Interval(HOUR, anchor=NOON))
    scene.begin_work()

    (planned,) = scene.run(lambda tx: tx.tasks.planned(USER, limit=9))

    assert planned == PlannedWork(planned.conversation, is_running=True)
    assert planned.conversation.next_run_at == NOON


def unattended_runs_of_a_period_are_bars(scene: Scene) -> None:
    task = scene.task(Interval(HOUR, anchor=NOON))
    claims = []
    for _ in range(2):
        claims.append(scene.begin_work())
        scene.clock.advance(SECOND)
        scene.finish(claims[-1])
        scene.clock.advance(HOUR - SECOND)
    claims.append(scene.begin_work())
    chat = scene.chat()
    scene.say(chat)
    scene.finish(scene.begin_reply(), "Well.")

    ended = scene.run(lambda tx: tx.away.bars(USER, NOON, limit=9))
    newest = scene.run(lambda tx: tx.away.bars(USER, NOON + SECOND, limit=9))
    active = scene.run(lambda tx: tx.away.active_bars(USER, limit=9))
    scene.hand_back(claims[-1], after=None)
    queued = scene.run(lambda tx: tx.away.active_bars(USER, limit=9))

    assert [bar.run_id for bar in ended] == [claims[1].run.id, claims[0].run.id]
    assert newest == ended[:1]
    assert active == [
        RunBar(
            run_id=claims[2].run.id,
            conversation_id=task.id,
            title=task.title,
            status=RunStatus.RUNNING,
            started_at=NOON + 2 * HOUR,
            ended_at=None,
        )
    ]
    assert [bar.status for bar in queued] == [RunStatus.QUEUED]


def questions_of_a_period_are_read_by_their_conversations(scene: Scene) -> None:
    one, other = scene.task(), scene.task()
    for number, task in enumerate((one, other, one)):
        asked = make.question(id=QuestionId(f"q_{number}"), asked_at=scene.clock.now)
        scene.change(task, partial(transitions.ask_owner, question=asked))
        scene.clock.advance(SECOND)

    found = scene.run(lambda tx: tx.away.asked(USER, [one.id], NOON - SECOND, limit=9))
    late = scene.run(lambda tx: tx.away.asked(USER, [one.id, other.id], NOON, limit=9))

    assert [(which, asked.id) for which, asked in found] == [(one.id, "q_0"), (one.id, "q_2")]
    assert [asked.id for _, asked in late] == ["q_1", "q_2"]
    assert scene.run(lambda tx: tx.away.asked(USER, [], NOON, limit=9)) == []
