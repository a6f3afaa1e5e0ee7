"""Workers that are told to stop, and runs that are: in time, and with nothing left behind."""

import signal
import time
from datetime import timedelta

from support.doubles.engine import Call, End, Ignore, Say
from support.faults import script
from support.faults.halting import Point
from support.faults.outside import Outside
from support.programs import process_table
from support.programs.families import MEMBERS, family_argv
from support.programs.workers import Workers, assert_sound
from support.requirements import requirement

from backburner.core.question import Purpose
from backburner.core.transitions import LEAVE

#: More than anything takes.
FOR_EVER = 600
DRAIN = 2.0
#: Enough to start all that is to be stopped.
RUN_TIMEOUT = timedelta(seconds=5)
#: How long runs have after that, and the program for its end.
LAST_WORDS = 4.0 + 2.0


def done(name: str) -> End:
    return End({"complete": True, "message": f"{name} is done."})


def test_a_worker_that_drains_hands_everything_back_in_time_and_another_finishes_it(
    outside: Outside, workers: Workers
) -> None:
    tasks = [
        outside.task(Call("send", {"text": name}), Call("look", {"seconds": 1}), done(name))
        for name in ("first", "second", "third")
    ]
    # This one does not come to a good place, however long one waits.
    tasks.append(outside.task(Call("look", {"seconds": FOR_EVER}), done("fourth")))
    drains = workers.start("--drain", f"{DRAIN}s")
    outside.wait_for(lambda: len(workers.traces.read("look")) == len(tasks))
    began = time.monotonic()

    ended = drains.running.end(signal.SIGTERM)

    assert time.monotonic() - began < DRAIN + LAST_WORDS
    assert (ended.code, ended.out) == (0, ["stopped"])
    assert outside.rows("SELECT DISTINCT status FROM runs") == [("queued",)]
    workers.start()
    assert_sound(outside, workers)
    assert workers.sent() == ["first", "second", "third"]
    assert [outside.said(task) for task in tasks] == [["Done."]] * 4
    # They were not given up, and went on as the same runs.
    assert outside.rows("SELECT status, count(*) FROM runs GROUP BY status") == [("success", 4)]


def test_a_run_that_is_just_being_claimed_when_a_worker_stops_is_handed_back(
    outside: Outside, workers: Workers
) -> None:
    task = outside.task(done("task"))
    stops = workers.start(halt_at=Point.AFTER_CLAIM)
    stops.wait_until_halted(Point.AFTER_CLAIM)

    stops.running.process.send_signal(signal.SIGTERM)
    stops.running.process.send_signal(signal.SIGUSR1)

    assert stops.running.end().code == 0
    assert outside.rows("SELECT 1 FROM runs WHERE status = 'running'") == []
    workers.start()
    assert_sound(outside, workers)
    assert len(outside.said(task)) == 1


def test_an_agent_that_ignores_everything_does_not_keep_a_worker_that_drains(
    outside: Outside, workers: Workers
) -> None:
    task = outside.task(Call("look"), Ignore(FOR_EVER))
    drains = workers.start("--drain", "500ms")
    outside.wait_for(lambda: workers.traces.read("look"))
    began = time.monotonic()

    ended = drains.running.end(signal.SIGTERM)

    assert ended.code == 0
    assert time.monotonic() - began < 0.5 + LAST_WORDS
    assert outside.rows("SELECT status FROM runs") == [("queued",)]
    workers.start()
    assert_sound(outside, workers)
    assert outside.said(task) == ["Done."]


def test_a_call_that_does_not_end_is_left_in_doubt_when_a_worker_drains(
    outside: Outside, workers: Workers
) -> None:
    task = outside.task(Call("slow", {"seconds": FOR_EVER}), done("task"))
    drains = workers.start("--drain", "500ms")
    outside.wait_for(lambda: workers.traces.read("slow"))

    assert drains.running.end(signal.SIGTERM).code == 0

    question = outside.question(task)
    assert question.purpose is Purpose.IN_DOUBT
    outside.answer(task, question, LEAVE)
    workers.start()
    assert_sound(outside, workers)
    assert outside.said(task)[1:] == ["Done."]
    assert outside.rows("SELECT count(*) FROM questions") == [(1,)]


def test_a_cancelled_run_makes_no_further_call_and_nothing_it_started_is_left(
    outside: Outside, workers: Workers
) -> None:
    word = f"cancelled-{time.monotonic_ns()}"
    argv = list(family_argv(word))
    task = outside.task(
        Say("Here we go."),
        Call("spawn", {"argv": argv, "lines": MEMBERS}),
        Call("send", {"text": "never"}),
        done("task"),
    )
    workers.start()
    outside.wait_for(lambda: workers.traces.read("spawned"))
    assert len(process_table.alive(word)) >= MEMBERS

    outside.cancel(task)

    is_over = "SELECT 1 FROM runs WHERE status = 'cancelled'"
    outside.wait_for(lambda: outside.rows(is_over), within=15)
    assert process_table.alive(word) == []
    assert_sound(outside, workers)
    assert workers.sent() == []
    assert outside.rows("SELECT count(*) FROM runs") == [(1,)]


@requirement("C-cancel")
def test_nothing_that_a_cancelled_job_started_is_left(outside: Outside, workers: Workers) -> None:
    word = f"job-{time.monotonic_ns()}"
    spawn = Call("spawn", {"argv": list(family_argv(word)), "lines": MEMBERS})
    chat = outside.chat()
    outside.jobs(chat, script.write(spawn, done("job")))
    workers.start()
    outside.wait_for(lambda: workers.traces.read("spawned"))
    assert len(process_table.alive(word)) >= MEMBERS

    outside.cancel_jobs(chat)

    outside.wait_for(lambda: process_table.alive(word) == [], within=10)
    assert outside.rows("SELECT ended_as FROM conversations WHERE kind = 'job'") == [("cancelled",)]
    assert_sound(outside, workers)
    assert outside.rows("SELECT status FROM runs") == [("cancelled",)]


@requirement("A-timeout")
def test_a_run_that_takes_too_long_is_stopped_with_everything_it_started(
    outside: Outside, workers: Workers
) -> None:
    word = f"late-{time.monotonic_ns()}"
    call = Call("spawn", {"argv": list(family_argv(word)), "lines": MEMBERS})
    outside.task(call, done("task"), run_timeout=RUN_TIMEOUT)
    workers.start()
    outside.wait_for(lambda: workers.traces.read("spawned"))
    assert len(process_table.alive(word)) >= MEMBERS

    is_over = "SELECT failure_kind FROM runs WHERE status = 'failure'"
    stopped_within = RUN_TIMEOUT.total_seconds() + 10
    failed = outside.wait_for(lambda: outside.rows(is_over), within=stopped_within)

    assert failed == [("timeout",)]
    assert process_table.alive(word) == []
