"""Parts of runs, what they were told and asked, and what they cost are read as they were kept."""

from datetime import timedelta
from functools import partial

from backburner.core import transitions
from backburner.core.allowance import Amount, Cost, Usage
from backburner.core.ids import QuestionId, RunId, new_run_id
from backburner.core.question import Purpose
from backburner.core.run import RunStatus, SkippedSlots, SkipReason, Turn
from backburner.core.schedule import Gap, Interval
from backburner.core.work.timeline import PaidCall, RunPart
from backburner.ports import AwaitedJobs, Claim, RunCost, Tx
from support.stage import make
from support.stage.make import NOON, USER
from support.stage.scene import Scene

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


def a_run_is_kept_part_by_part_with_what_it_was_told(scene: Scene) -> None:
    task = scene.task()
    first = scene.begin_work()
    scene.clock.advance(SECOND)
    scene.hand_back(first, after=SECOND)
    scene.clock.advance(5 * SECOND)
    second = scene.begin_work()
    resumed = scene.run(lambda tx: tx.runs.load(USER, first.run.id))
    scene.clock.advance(SECOND)
    scene.finish(second)

    assert second.run.id == first.run.id
    assert resumed.resumed_at == NOON + 6 * SECOND
    parts = scene.run(lambda tx: tx.browse.run_parts(USER, [first.run.id]))
    assert parts == {
        first.run.id: [
            RunPart(first.turn.epoch, NOON, NOON + SECOND),
            RunPart(second.turn.epoch, NOON + 6 * SECOND, NOON + 7 * SECOND),
        ]
    }
    assert scene.run(lambda tx: tx.browse.prompts(USER, first.run.id, limit=9)) == ["Begin."]
    assert scene.run(lambda tx: tx.browse.run_parts(USER, [])) == {}
    assert scene.history(task)[0].status is RunStatus.SUCCESS


def model_calls_are_read_one_by_one_and_summed_up(scene: Scene) -> None:
    scene.task()
    claim = scene.begin_work()
    _spend(scene, claim, 7, Usage(input=3, output=2, cache_read=2))
    scene.clock.advance(SECOND)
    _spend(scene, claim, 5, Usage(input=5), priced=False)
    run_id = claim.run.id

    calls = scene.run(lambda tx: tx.browse.model_calls(USER, run_id, limit=9))
    costs = scene.run(lambda tx: tx.browse.run_costs(USER, [run_id, RunId("r_none")]))
    totals = scene.run(lambda tx: tx.browse.run_totals(USER, [run_id, RunId("r_none")]))

    assert calls[0] == PaidCall(
        model="model", spent=Amount(7, 7), output=2, cached=2, ended_at=NOON
    )
    assert [call.ended_at for call in calls] == [NOON, NOON + SECOND]
    cost = RunCost(Amount(12, 12), output=2, cached=2, calls=2, is_all_priced=False)
    assert costs == {run_id: cost}
    assert totals == {run_id: Amount(12, 12)}
    assert scene.run(lambda tx: tx.browse.run_totals(USER, [])) == {}


def of_model_calls_from_before_only_all_tokens_are_known(scene: Scene) -> None:
    scene.task()
    claim = scene.begin_work()
    _spend(scene, claim, 7, None)
    _spend(scene, claim, 7, Usage(output=7))

    (cost,) = scene.run(lambda tx: tx.browse.run_costs(USER, [claim.run.id])).values()

    assert cost == RunCost(Amount(14, 14), output=None, cached=None, calls=2, is_all_priced=True)


def what_a_run_asked_is_read_with_its_answer(scene: Scene) -> None:
    task = scene.task()
    claim = scene.begin_work()
    for number, run_id in enumerate((claim.run.id, new_run_id())):
        asked = make.question(id=QuestionId(f"q_{number}"), run_id=run_id, asked_at=scene.clock.now)
        scene.change(task, partial(transitions.ask_owner, question=asked))
    scene.clock.advance(SECOND)
    scene.answer(task, "yes")

    (found,) = scene.run(lambda tx: tx.browse.asked_by(USER, claim.run, limit=9))

    assert (found.id, found.purpose, found.answer) == ("q_0", Purpose.QUESTION, "yes")
    assert (found.asked_at, found.closed_at) == (NOON, NOON + SECOND)


def the_runs_around_a_run_are_in_order_and_the_last_ones_leave_out_skipped_ones(
    scene: Scene,
) -> None:
    task = scene.task(Interval(HOUR, anchor=NOON))
    ids = []
    for _ in range(3):
        claim = scene.begin_work()
        scene.finish(claim)
        ids.append(claim.run.id)
        scene.clock.advance(HOUR)
    skipped = SkippedSlots(Gap(1, NOON, NOON), SkipReason.MISSED)
    scene.run(lambda tx: tx.runs.skip(USER, task.id, [skipped], revision=0))
    middle = scene.run(lambda tx: tx.runs.load(USER, ids[1]))

    earlier = scene.run(lambda tx: tx.browse.earlier_runs(USER, middle, limit=9))
    later = scene.run(lambda tx: tx.browse.later_runs(USER, middle, limit=9))
    last = scene.run(lambda tx: tx.browse.last_runs(USER, task.id, limit=2))

    assert [run.id for run in earlier] == ids[:1]
    assert [run.id for run in later][:1] == ids[2:]
    assert later[1].status is RunStatus.SKIPPED
    assert [run.id for run in last] == [ids[2], ids[1]]


def jobs_that_a_run_waits_for_are_counted(scene: Scene) -> None:
    task = scene.task()
    claim = scene.begin_work()
    scene.hand_back(claim, after=None)
    jobs = {make.OTHER: True, make.CONVERSATION: False}
    scene.run(lambda tx: tx.jobs.wait(claim.turn, jobs))

    counted = scene.run(lambda tx: tx.browse.awaited_jobs(USER, [claim.run.id]))

    assert counted == {claim.run.id: AwaitedJobs(2, 1)}
    assert scene.run(lambda tx: tx.browse.awaited_jobs(USER, [])) == {}
    assert scene.load(task).id == task.id


def conversations_that_have_spent_most_are_listed_first(scene: Scene) -> None:
    cheap, dear, _ = scene.task(), scene.task(), scene.task()
    for task, tokens in ((cheap, 1), (dear, 5)):
        claim = scene.begin_work()
        turn, cost = claim.turn, Cost(Amount(tokens, tokens), priced=True)
        key = f"conversation:{task.id}"
        scene.run(partial(_add, turn, cost, key))

    top = scene.run(lambda tx: tx.spending.top(USER, searched=9, limit=9))

    assert [(one.id, one.spent.micros) for one in top] == [(dear.id, 5), (cheap.id, 1)]
    assert scene.run(lambda tx: tx.spending.top(USER, searched=9, limit=1)) == top[:1]
    assert scene.run(lambda tx: tx.spending.top(USER, searched=1, limit=9)) == []


def _add(turn: Turn, cost: Cost, key: str, tx: Tx) -> None:
    tx.spending.add(turn, turn.conversation_id, "model", cost, counts_to=[key])


def _spend(
    scene: Scene, claim: Claim, tokens: int, usage: Usage | None, *, priced: bool = True
) -> None:
    turn, cost = claim.turn, Cost(Amount(tokens, tokens), priced=priced)
    counts_to = [f"run:{turn.run_id}"]
    scene.run(
        lambda tx: tx.spending.add(
            turn, turn.conversation_id, "model", cost, counts_to=counts_to, usage=usage
        )
    )
