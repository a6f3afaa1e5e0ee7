"""Workers that are added: each takes up what the others have no seat for."""

from support.doubles.engine import Call, End
from support.faults.outside import Outside
from support.programs.workers import Workers
from support.requirements import requirement

#: More than anything takes.
FOR_EVER = 600


@requirement("A-starvation")
def test_a_worker_that_is_added_takes_up_what_waits_for_a_seat(
    outside: Outside, workers: Workers
) -> None:
    for _ in range(3):
        outside.task(Call("look", {"seconds": FOR_EVER}), End({"complete": True}))

    def holders() -> list[str]:
        query = "SELECT worker FROM runs WHERE status = 'running' ORDER BY started_at"
        return [name for (name,) in outside.rows(query)]

    first = workers.start("--concurrency", "1")
    outside.wait_for(lambda: len(workers.traces.read("look")) == 1)
    assert holders() == [first.name]

    second = workers.start("--concurrency", "1")
    outside.wait_for(lambda: len(workers.traces.read("look")) == 2)

    assert holders() == [first.name, second.name]
    waiting = "SELECT count(*) FROM conversations WHERE status = 'background' AND turn_run IS NULL"
    assert outside.rows(waiting) == [(1,)]
