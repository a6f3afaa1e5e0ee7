"""Workers that are killed or stand still, at every point where it could matter."""

import time

import pytest
from support.doubles.engine import Call, End, Say, Spend
from support.faults.halting import Point
from support.faults.outside import Outside
from support.programs.workers import LEASE, TAKEOVER, Workers, assert_sound
from support.stage.scene import read_everything

from backburner.core.conversation import Conversation, EndedAs
from backburner.core.question import Purpose
from backburner.core.transitions import HAPPENED


def done(name: str) -> End:
    return End({"complete": True, "message": f"{name} is done."})


def give_work(outside: Outside) -> tuple[list[Conversation], Conversation]:
    """Give two tasks that send something, and say something that wants a reply."""
    tasks = [
        outside.task(Spend(10), Call("send", {"text": name}), Spend(5), done(name))
        for name in ("first", "second")
    ]
    chat = outside.chat()
    outside.say(chat, Say("Good "), Say("morning."))
    return tasks, chat


def assert_all_done(
    outside: Outside, workers: Workers, tasks: list[Conversation], chat: Conversation
) -> None:
    assert_sound(outside, workers)
    assert workers.sent() == ["first", "second"]
    assert [outside.load(task).ended_as for task in tasks] == [EndedAs.COMPLETED] * 2
    assert [outside.said(task) for task in tasks] == [["first is done."], ["second is done."]]
    assert outside.said(chat) == ["Good morning."]


def taken_over(outside: Outside, dead: str, since: float) -> None:
    """Wait until nothing is left with a worker that was killed."""
    held = "SELECT 1 FROM runs WHERE status = 'running' AND worker = :dead"
    left = since + LEASE + TAKEOVER - time.monotonic()
    outside.wait_for(lambda: not outside.rows(held, dead=dead), within=left)


@pytest.mark.parametrize(
    ("point", "runs"), [(Point.AFTER_CLAIM, 1), (Point.BEFORE_COMMIT, 3), (Point.AFTER_COMMIT, 3)]
)
def test_what_a_killed_worker_left_is_finished_by_another_and_nothing_is_done_twice(
    outside: Outside, workers: Workers, point: Point, runs: int
) -> None:
    tasks, chat = give_work(outside)
    dies = workers.start(halt_at=point)
    # All of them: a call that a kill cuts off would be asked about.
    for _ in range(runs):
        dies.wait_until_halted(point)
    workers.start()

    killed_at = dies.kill()

    taken_over(outside, dies.name, killed_at)
    assert_all_done(outside, workers, tasks, chat)
    assert workers.delivered() == ["first is done.", "second is done."]


def test_a_call_that_was_cut_off_is_asked_about_once_and_not_made_again(
    outside: Outside, workers: Workers
) -> None:
    task = outside.task(Call("send", {"text": "letter"}), done("task"))
    dies = workers.start(halt_at=Point.IN_TOOL)
    dies.wait_until_halted(Point.IN_TOOL)
    workers.start()

    killed_at = dies.kill()

    taken_over(outside, dies.name, killed_at)
    question = outside.question(task)
    assert question.purpose is Purpose.IN_DOUBT
    outside.wait_until_settled()
    outside.answer(task, question, HAPPENED)
    assert_sound(outside, workers)
    assert workers.sent() == ["letter"]
    assert outside.said(task)[1:] == ["task is done."]
    assert outside.rows("SELECT count(*) FROM questions") == [(1,)]
    assert workers.delivered() == sorted([question.prompt, "task is done."])


def test_what_was_sent_just_before_a_kill_may_come_twice_under_the_same_key(
    outside: Outside, workers: Workers
) -> None:
    outside.task(done("task"))
    dies = workers.start(halt_at=Point.AFTER_SEND)
    dies.wait_until_halted(Point.AFTER_SEND)
    workers.start()

    dies.kill()
    outside.let_a_minute_pass_for_deliveries()

    assert_sound(outside, workers)
    first, again = workers.traces.read("delivery")
    assert first == again


@pytest.mark.parametrize("point", [Point.BEFORE_COMMIT, Point.IN_TOOL])
def test_one_that_stood_still_past_its_lease_writes_nothing_when_it_goes_on(
    outside: Outside, workers: Workers, point: Point
) -> None:
    task = outside.task(Call("look", {"text": "look"}), done("task"))
    stops = workers.start(halt_at=point)
    stops.wait_until_halted(point)
    stops.stop()
    workers.start()
    assert_sound(outside, workers)
    before = outside.database.run(read_everything)

    stops.go_on()

    stops.running.wait_for_error("run.fenced")
    assert outside.database.run(read_everything) == before
    assert outside.said(task) == ["task is done."]
