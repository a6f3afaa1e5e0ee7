"""A run that was handed back until jobs have settled goes on then, and not before its time."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from backburner.core import transitions
from backburner.core.conversation import Author, Conversation
from backburner.core.ids import ConversationId, ItemId, UserId, new_conversation_id
from backburner.core.run import Item, RunKind
from backburner.core.schedule import Immediate
from backburner.core.transitions import Brief, Report, Step
from backburner.ports import Claim
from backburner.store.records.waits import Waits
from support.stage import make
from support.stage.make import NOON, STRANGER, USER
from support.stage.scene import Scene

LONG = timedelta(hours=1)


def a_run_waits_until_all_its_jobs_have_settled(scene: Scene) -> None:
    chat, first, second = _family(scene)
    reply = _block(scene, chat, first, second)

    scene.change(first, lambda found: transitions.cancel(found, now=NOON, by_parent=True))
    assert _goes_on(scene, chat) is None
    scene.change(second, lambda found: transitions.ask_owner(found, make.question()))

    claim = _goes_on(scene, chat)
    assert claim is not None
    assert (claim.run.id, claim.resumed) == (reply.run.id, True)
    assert claim.awaited_jobs == tuple(sorted([first.id, second.id]))


def what_has_settled_before_is_not_waited_for(scene: Scene) -> None:
    chat, first, second = _family(scene)
    for job in (first, second):
        scene.change(job, lambda found: transitions.cancel(found, now=NOON, by_parent=True))

    _block(scene, chat, first, second)

    assert _goes_on(scene, chat) is not None


def a_person_who_speaks_ends_the_wait(scene: Scene) -> None:
    _, first, _ = _family(scene)
    task = scene.task()
    work = scene.begin_work()
    scene.hand_back(work, after=LONG)
    scene.run(lambda tx: Waits(tx).begin(work.turn, {first.id: False}))

    scene.say(task)
    reply = scene.begin_reply()
    scene.finish(reply, "Yes?", served=scene.items(reply))

    claim = _goes_on(scene, task)
    assert claim is not None
    assert (claim.run.id, claim.awaited_jobs) == (work.run.id, (first.id,))


def a_person_who_has_spoken_already_ends_it_too(scene: Scene) -> None:
    chat, first, _ = _family(scene)
    scene.say(chat)
    reply = scene.begin_reply()
    loaded = scene.items(reply)
    scene.say(chat, "Two.")
    scene.hand_back(reply, after=LONG, served=loaded)
    scene.run(lambda tx: Waits(tx).begin(reply.turn, {first.id: False}))

    again = scene.begin_reply()

    assert (again.run.id, again.awaited_jobs) == (reply.run.id, (first.id,))


def a_job_that_is_deleted_is_not_waited_for(scene: Scene) -> None:
    chat, first, second = _family(scene)
    _block(scene, chat, first)
    assert _goes_on(scene, chat) is None

    scene.run(lambda tx: tx.conversations.delete(USER, first.id))

    assert _goes_on(scene, chat) is not None
    assert scene.load(second).id == second.id


def once_it_goes_on_nothing_is_waited_for(scene: Scene) -> None:
    chat, first, _ = _family(scene)
    _block(scene, chat, first)
    scene.say(chat)
    again = scene.begin_reply()
    scene.hand_back(again, after=None, served=scene.items(again))

    scene.change(first, lambda found: transitions.cancel(found, now=NOON, by_parent=True))

    assert _goes_on(scene, chat) is None
    assert scene.dump()["waits"] == []


def the_result_of_a_job_that_a_run_waits_for_is_known_to_be_for_it(scene: Scene) -> None:
    chat, first, second = _family(scene)
    _block(scene, chat, first)

    def kind(job: Conversation) -> RunKind | None:
        return scene.run(lambda tx: Waits(tx).awaited_by(USER, chat.id, job.id))

    assert (kind(first), kind(second)) == (RunKind.REPLY, None)
    assert scene.run(lambda tx: Waits(tx).awaited_by(STRANGER, chat.id, first.id)) is None


def what_a_run_served_before_it_crashed_is_served_again(scene: Scene) -> None:
    chat = scene.chat()
    scene.say(chat)
    reply = scene.begin_reply()
    loaded = scene.items(reply)
    scene.hand_back(reply, served=loaded)
    going_on = _goes_on(scene, chat)
    assert going_on is not None
    assert scene.waiting(chat, RunKind.REPLY) == ()

    scene.crash(going_on)

    assert [item.id for item in scene.waiting(chat, RunKind.REPLY)] == _ids(loaded)
    assert scene.begin_reply().run.id != reply.run.id


def results_can_be_kept_for_another_kind_of_run(scene: Scene) -> None:
    chat, first, _ = _family(scene)
    scene.change(chat, lambda found: transitions.receive_report(found, first, Report("Done.")))
    (item,) = scene.waiting(chat, RunKind.REPLY)

    def redirect(owner: UserId) -> None:
        scene.run(lambda tx: tx.jobs.redirect(owner, [item.id], RunKind.BACKGROUND))

    redirect(STRANGER)
    assert scene.waiting(chat, RunKind.REPLY) == (item,)
    redirect(USER)
    assert _ids(scene.waiting(chat, RunKind.BACKGROUND)) == [item.id]


def jobs_are_found_under_what_handed_them_out_and_counted_at_the_root(scene: Scene) -> None:
    chat, first, second = _family(scene)
    scene.change(second, lambda found: transitions.cancel(found, now=NOON, by_parent=True))

    def under(owner: UserId, **more: Any) -> list[ConversationId]:
        found = scene.run(lambda tx: tx.jobs.started_by(owner, chat.id, limit=9, **more))
        return sorted(job.id for job in found)

    assert under(USER) == sorted([first.id, second.id])
    assert under(USER, ids=[first.id[:12]]) == [first.id]
    assert under(USER, ids=["c%"]) == under(USER, ids=()) == under(USER, batch="other") == []
    assert under(STRANGER) == []
    assert scene.run(lambda tx: tx.jobs.count_open(USER, chat.id)) == 1
    assert scene.run(lambda tx: tx.jobs.count_open(STRANGER, chat.id)) == 0


def a_result_is_retrieved_once_and_by_its_owner(scene: Scene) -> None:
    _, first, _ = _family(scene)
    later = NOON + LONG

    scene.run(lambda tx: tx.jobs.mark_retrieved(STRANGER, [first.id]), now=later)
    assert scene.load(first).retrieved_at is None
    scene.run(lambda tx: tx.jobs.mark_retrieved(USER, [first.id]))
    scene.run(lambda tx: tx.jobs.mark_retrieved(USER, [first.id]), now=later)

    assert scene.load(first).retrieved_at == NOON


def _family(scene: Scene) -> tuple[Conversation, Conversation, Conversation]:
    """Have a chat with two jobs, both at work and neither due."""
    chat = scene.chat()
    return chat, _job(scene, chat), _job(scene, chat)


def _job(scene: Scene, chat: Conversation) -> Conversation:
    brief = Brief(
        title="Job",
        prompt="Do it.",
        schedule=Immediate(),
        parent_id=chat.id,
        root_id=chat.id,
        created_by=Author.AGENT,
    )
    born = transitions.start_job(new_conversation_id(), USER, brief, now=NOON)
    return scene.add(Step(conversation=replace(born.conversation, next_run_at=None)))


def _block(scene: Scene, chat: Conversation, *jobs: Conversation) -> Claim:
    """Let a reply in a chat wait for jobs."""
    scene.say(chat)
    reply = scene.begin_reply()
    scene.hand_back(reply, after=LONG, served=scene.items(reply))
    settled = {job.id: scene.load(job).schedule is None for job in jobs}
    scene.run(lambda tx: Waits(tx).begin(reply.turn, settled))
    return reply


def _goes_on(scene: Scene, conversation: Conversation) -> Claim | None:
    claim = scene.claim_work()
    assert claim is None or claim.turn.conversation_id == conversation.id
    return claim


def _ids(items: Iterable[Item]) -> list[ItemId]:
    return [item.id for item in items]
