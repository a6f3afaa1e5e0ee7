"""What is to be done next is known, and what is over for long is forgotten."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

from backburner.core import transitions
from backburner.core.conversation import Destination
from backburner.core.notice import Notice, NoticeKind
from backburner.core.run import RunKind
from backburner.core.schedule import Interval, Scheduled
from backburner.core.transitions import Step
from backburner.ports import Agenda, Claim
from backburner.store.queue import agenda
from backburner.store.tx import Tx
from support.stage import make
from support.stage.make import NOON, USER
from support.stage.scene import LEASE, Scene

NOTHING = Agenda(now=NOON, work=None, rescue=None, delivery=None, question=None, one_account=True)
MINUTE, NOW = timedelta(minutes=1), timedelta()


def nothing_is_to_be_done_where_nothing_is_going_on(scene: Scene) -> None:
    scene.chat()

    assert _look(scene) == NOTHING


def the_next_thing_to_be_done_is_known_in_advance(scene: Scene) -> None:
    scene.task(Scheduled(NOON + 9 * MINUTE))
    scene.task(Scheduled(NOON + 5 * MINUTE))
    assert _look(scene).work == 5 * MINUTE
    scene.task()
    assert _look(scene).work == NOW

    claim = scene.begin_work()
    assert _look(scene).work == 5 * MINUTE
    assert _look(scene).rescue == LEASE
    scene.hand_back(claim, after=MINUTE)

    assert _look(scene) == replace(NOTHING, work=MINUTE)


def somebody_who_waits_is_to_be_answered_now(scene: Scene) -> None:
    chat = scene.chat()
    scene.say(chat)
    assert _look(scene).work == NOW

    scene.begin_reply()

    assert _look(scene).work is None


def a_part_to_be_sent_and_a_question_have_their_times(scene: Scene) -> None:
    task = scene.task(Scheduled(NOON + timedelta(days=9)), reports_to=(Destination("web", "me"),))
    told = (Notice(NoticeKind.RESULT, "Told."),)
    scene.change(task, lambda found: Step(conversation=found, notices=told))
    assert _look(scene).delivery == NOW
    scene.run(lambda tx: tx.deliveries.lease(lease=LEASE))
    assert _look(scene).delivery == LEASE

    asked = make.question(remind_at=NOON + 2 * MINUTE, expires_at=NOON + MINUTE, default="yes")
    scene.change(task, lambda found: transitions.ask_owner(found, asked))

    assert _look(scene).question == MINUTE


def questions_whose_time_has_come_are_found(scene: Scene) -> None:
    chat = scene.chat()
    for number, when in enumerate(({"remind_at": NOON}, {"expires_at": NOON}, {})):
        question = make.question(id=f"q_{number}", **when)
        scene.change(chat, partial(transitions.ask_owner, question=question))

    found = scene.run(lambda tx: tx.questions.due(limit=9))

    assert sorted(found) == [(USER, "q_0"), (USER, "q_1")]
    before = NOON - timedelta.resolution
    assert scene.run(lambda tx: tx.questions.due(limit=9), now=before) == []


def old_runs_are_forgotten_but_the_last_of_each_and_what_was_learned(scene: Scene) -> None:
    task = scene.task(Interval(MINUTE, anchor=NOON))
    for number in range(3):
        claim = scene.begin_work()
        entries = [f"learned {number}"]
        scene.run(partial(_learn, claim, entries))
        scene.finish(claim)
        scene.clock.advance(MINUTE)
    long_after = scene.clock.now + timedelta(days=40)

    assert scene.run(lambda tx: tx.runs.prune(before=long_after, limit=1)) == 1
    assert scene.run(lambda tx: tx.runs.prune(before=long_after, limit=9)) == 1
    assert scene.run(lambda tx: tx.runs.prune(before=long_after, limit=9)) == 0

    assert len(scene.history(task)) == 1
    assert scene.load(task).run_count == 3
    claim = scene.begin_work()
    learned = scene.run(lambda tx: tx.sessions.load(claim.turn, "s"))
    assert learned == ("learned 0", "learned 1", "learned 2")


def what_a_crashed_run_wrote_is_forgotten_with_it(scene: Scene) -> None:
    chat = scene.chat()
    scene.say(chat)
    dead = scene.begin_reply()
    scene.run(lambda tx: tx.sessions.append(dead.turn, "s", ["lost"]))
    scene.crash(dead)
    again = scene.begin_reply()
    scene.finish(again, "Hello.", served=scene.items(again))

    long_after = scene.clock.now + timedelta(days=40)
    assert scene.run(lambda tx: tx.runs.prune(before=long_after, limit=9)) == 2

    assert scene.run(lambda tx: tx.sessions.load(again.turn, "s")) == ()


def a_message_that_is_taken_back_goes_with_what_came_after_it(scene: Scene) -> None:
    chat = scene.chat()
    scene.say(chat, "One.")
    first = scene.begin_reply()
    scene.finish(first, "Answer.", served=scene.items(first))
    scene.say(chat, "Two.")
    second = scene.begin_reply()
    scene.finish(second, "Wrong.", served=scene.items(second))

    scene.run(lambda tx: tx.messages.remove_last(USER, chat.id))

    kept = scene.run(lambda tx: tx.messages.recent(USER, chat.id, limit=9))
    assert [message.content for message in kept] == ["One.", "Answer."]


def what_is_said_so_far_is_shown_only_by_whoever_has_the_turn(scene: Scene) -> None:
    chat = scene.chat()
    scene.say(chat)
    first = scene.begin_reply()
    scene.crash(first)
    second = scene.begin_reply()

    scene.run(lambda tx: tx.runs.save_draft(second.turn, "So far."))
    scene.run(lambda tx: tx.runs.save_draft(first.turn, "Stale."))

    (drafted,) = [row for row in scene.dump()["runs"] if "So far." in row]
    assert second.run.id in drafted
    assert not any("Stale." in row for row in scene.dump()["runs"])


def a_reply_is_asked_to_stop_and_work_is_not(scene: Scene) -> None:
    task = scene.task()
    scene.begin_work()
    assert not scene.run(lambda tx: tx.runs.request_stop(USER, task.id, kind=RunKind.REPLY))
    chat = scene.chat()
    scene.say(chat)
    scene.begin_reply()

    assert scene.run(lambda tx: tx.runs.request_stop(USER, chat.id, kind=RunKind.REPLY))


def _learn(claim: Claim, entries: list[str], tx: Tx) -> None:
    tx.sessions.append(claim.turn, "s", entries)


def _look(scene: Scene) -> Agenda:
    now, tick = scene.clock()
    row = scene.run(lambda tx: tx.connection.execute(agenda.next_times()).one())
    return agenda.to_agenda(row, now=now, tick=tick)
