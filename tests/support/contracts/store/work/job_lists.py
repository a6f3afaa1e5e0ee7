"""Lists of jobs have what stands as it is asked for, and nothing else."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from backburner.core import transitions
from backburner.core.conversation import Conversation, EndedAs, PauseReason, Status
from backburner.core.ids import ConversationId, derive_question_id, new_conversation_id
from backburner.core.schedule import Immediate
from backburner.core.transitions import Brief, Step
from backburner.core.work.views import JobStatus, job_status
from backburner.ports import ConversationFilter, View
from support.stage import make
from support.stage.make import CONVERSATION, MATE, USER
from support.stage.scene import Scene


def jobs_are_listed_by_how_they_stand(scene: Scene) -> None:
    scene.user()
    made = [*_in_every_state(scene)]
    for job in made:
        asked = (replace(make.question(), id=derive_question_id(job.id)),)
        waits = job.status is Status.WAITING_INPUT
        scene.add(Step(conversation=replace(job, questions=()), asked=asked if waits else ()))

    for status in JobStatus:
        wanted = ConversationFilter(view=View.JOBS, job=status)
        stand_so = {job.id for job in made if _derive(job) is status}
        assert _listed(scene, wanted) == stand_so, status
        assert stand_so


def jobs_are_listed_by_their_batch_and_parent(scene: Scene) -> None:
    for user in (USER, MATE):
        scene.user(user)
    one, two = _job(scene), replace(_job(scene), batch="two")
    other = replace(_job(scene), parent_id=None)
    theirs = replace(_job(scene), user_id=MATE)
    for job in (one, two, other, theirs):
        scene.add(Step(conversation=job))
    scene.task()

    assert _listed(scene, ConversationFilter(view=View.JOBS)) == {one.id, two.id, other.id}
    assert _listed(scene, ConversationFilter(view=View.JOBS, batch="two")) == {two.id}
    assert _listed(scene, ConversationFilter(view=View.JOBS, parent_id=CONVERSATION)) == {
        one.id,
        two.id,
    }


def _in_every_state(scene: Scene) -> Iterator[Conversation]:
    ended = (None, *EndedAs)
    for status in Status:
        pauses = (None, *PauseReason) if status in (Status.ACTIVE, Status.ARCHIVED) else (None,)
        for pause, end, resuming in product(pauses, ended, (False, True)):
            if _is_known(status, pause, end):
                yield replace(
                    _job(scene), status=status, pause_reason=pause, ended_as=end, resuming=resuming
                )


def _is_known(status: Status, pause: PauseReason | None, end: EndedAs | None) -> bool:
    """Leave out what is no job: neither at work, nor paused, nor ended."""
    return status is not Status.ACTIVE or pause is not None or end is not None


def _job(scene: Scene) -> Conversation:
    brief = Brief(
        title="Count",
        prompt="Count.",
        schedule=Immediate(),
        parent_id=CONVERSATION,
        batch="one",
    )
    born = transitions.start_job(new_conversation_id(), USER, brief, now=scene.clock.now)
    return born.conversation


def _derive(job: Conversation) -> JobStatus | None:
    waits = job.status is Status.WAITING_INPUT
    return job_status(replace(job, questions=(make.question(),) if waits else ()))


def _listed(scene: Scene, wanted: ConversationFilter) -> set[ConversationId]:
    found = scene.database.run(lambda tx: tx.browse.conversations(USER, wanted, None, limit=500))
    return {seen.conversation.id for seen in found.conversations}
