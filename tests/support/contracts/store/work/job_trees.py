"""Jobs are read level by level, counted, and found by the conversation at their top."""

from dataclasses import replace
from datetime import timedelta

from backburner.core import transitions
from backburner.core.allowance import Amount, Cost
from backburner.core.conversation import Conversation, EndedAs, Kind, Status
from backburner.core.ids import ConversationId, new_conversation_id
from backburner.core.schedule import Immediate
from backburner.core.transitions import Brief, Step
from backburner.ports import JobCounts, JobParent
from support.stage import make
from support.stage.make import MATE, USER
from support.stage.scene import Scene

SECOND = timedelta(seconds=1)


def conversations_with_jobs_are_found_by_their_last_changed_job(scene: Scene) -> None:
    first, second = scene.chat(), scene.chat()
    theirs = scene.chat(MATE)
    _job(scene, theirs)
    above = _job(scene, first)
    scene.clock.advance(SECOND)
    _job(scene, second)
    scene.clock.advance(SECOND)
    _job(scene, above)
    _job(scene, make.conversation(id=ConversationId("c_gone")))

    found = scene.run(lambda tx: tx.jobs.parents(USER, searched=9, limit=9))
    newest = scene.run(lambda tx: tx.jobs.parents(USER, searched=9, limit=1))

    assert found == [
        JobParent(first.id, first.title, Kind.CHAT),
        JobParent(second.id, second.title, Kind.CHAT),
    ]
    assert newest == found[:1]


def a_level_has_open_jobs_first_and_counts_all(scene: Scene) -> None:
    one, other = scene.chat(), scene.chat()
    ends = (EndedAs.COMPLETED, EndedAs.ERROR, EndedAs.CANCELLED)
    for ended_as in ends:
        scene.clock.advance(SECOND)
        _job(scene, one, status=Status.ACTIVE, schedule=None, ended_as=ended_as)
    running = _job(scene, one)
    alone = _job(scene, other)
    ids = [one.id, other.id]

    level = scene.run(lambda tx: tx.jobs.level(USER, ids, each=2, limit=9))
    cut = scene.run(lambda tx: tx.jobs.level(USER, ids, each=9, limit=1))

    shown = {parent: [job.id for job in jobs] for parent, jobs in level.jobs.items()}
    assert (shown[one.id][0], len(shown[one.id]), shown[other.id]) == (running.id, 2, [alone.id])
    assert level.counts[one.id] == JobCounts(total=4, completed=1, failed=1, cancelled=1)
    assert level.counts[other.id] == JobCounts(total=1)
    assert sum(len(jobs) for jobs in cut.jobs.values()) == 1
    assert scene.run(lambda tx: tx.jobs.level(USER, [], each=9, limit=9)).jobs == {}


def what_jobs_have_cost_is_the_sum_of_their_runs(scene: Scene) -> None:
    chat = scene.chat()
    job = _job(scene, chat)
    turn, cost = scene.begin_work().turn, Cost(Amount(5, 7), priced=True)
    for _ in range(2):
        scene.run(
            lambda tx: tx.spending.add(
                turn, chat.id, "model", cost, counts_to=[f"run:{turn.run_id}"]
            )
        )

    costs = scene.run(lambda tx: tx.jobs.costs(USER, [job.id, chat.id]))

    assert costs == {job.id: Amount(10, 14)}
    assert scene.run(lambda tx: tx.jobs.costs(USER, [])) == {}


def _job(scene: Scene, parent: Conversation, **changes: object) -> Conversation:
    brief = Brief(
        title="Job", prompt="Do it.", schedule=Immediate(), parent_id=parent.id, root_id=parent.id
    )
    step = transitions.start_job(new_conversation_id(), parent.user_id, brief, now=scene.clock.now)
    job = replace(step.conversation, **changes)  # type: ignore[arg-type]
    return scene.add(Step(conversation=job))
