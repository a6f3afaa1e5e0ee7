"""Runs in progress, the lists of runs, and the children of conversations are read as they are."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from backburner.core import transitions
from backburner.core.conversation import Conversation, EndedAs, Notify, Status
from backburner.core.errors import NotFound
from backburner.core.ids import CallId, ConversationId, new_call_id, new_conversation_id
from backburner.core.outcome import Complete, NeedsInput
from backburner.core.question import NewQuestion, QuestionType
from backburner.core.run import RunStatus
from backburner.core.schedule import Immediate
from backburner.core.tool_policy import Tool, ToolCall
from backburner.core.transitions import Brief, Step
from backburner.core.work.activity import Activity, RunActivity
from backburner.core.work.facts import WorkFacts
from backburner.ports import CallEnd, Claim, ConversationFilter, PageKey, RunRow
from support.stage.make import MATE, USER
from support.stage.scene import Scene

MINUTE = timedelta(minutes=1)
ASKS = NeedsInput(
    message="One thing.", question=NewQuestion(type=QuestionType.INPUT, prompt="Which branch?")
)


def a_run_in_progress_is_read_with_the_call_that_it_makes(scene: Scene) -> None:
    task = scene.task()
    assert _running(scene, task) is None
    claim = scene.begin_work()
    seen = _seen(scene, task)
    assert (seen.run_id, seen.started_at) == (claim.run.id, scene.clock.now)
    assert (seen.call, seen.calls, seen.activity) == (None, 0, Activity.THINKING)

    scene.clock.advance(MINUTE)
    first = _begin_call(scene, claim, "read_file", path="a.txt")
    scene.clock.advance(MINUTE)
    second = _begin_call(scene, claim, "run_command", command="TOKEN=abc make")
    scene.clock.advance(MINUTE)
    _end_call(scene, claim, second)

    # The one that is still in progress, though another began later.
    seen = _seen(scene, task)
    assert (seen.doing, seen.calls) == ("read_file: path=a.txt", 2)
    _end_call(scene, claim, first)
    assert _seen(scene, task).doing == "thinking, after run_command: TOKEN=[hidden] make"
    scene.clock.advance(MINUTE)
    scene.run(lambda tx: tx.runs.save_draft(claim.turn, "It is "))
    assert _seen(scene, task).activity is Activity.WRITING

    scene.finish(claim)
    assert _running(scene, task) is None


def runs_are_listed_by_their_status_a_page_at_a_time(scene: Scene) -> None:
    scene.task(user=MATE)
    scene.finish(scene.begin_work())
    ended = []
    for _ in range(3):
        scene.clock.advance(MINUTE)
        scene.task()
        claim = scene.begin_work()
        scene.clock.advance(MINUTE)
        scene.finish(claim, Complete(message="Done."))
        ended.append(claim.run.id)
    scene.change(scene.task(), lambda found: transitions.rename(found, "Now"))
    current = scene.begin_work()

    assert [row.run.id for row in _runs(scene, RunStatus.SUCCESS)] == ended[::-1]
    first = _runs(scene, RunStatus.SUCCESS, limit=2)
    last = first[-1].run
    assert last.ended_at is not None
    after = (last.ended_at, last.id)
    assert [row.run.id for row in _runs(scene, RunStatus.SUCCESS, after)] == ended[:1]
    (running,) = _runs(scene, RunStatus.RUNNING)
    assert (running.run.id, running.title) == (current.run.id, "Now")
    assert running.running is not None
    assert running.running.run_id == current.run.id
    assert _runs(scene, RunStatus.RUNNING, (scene.clock.now, "r")) == []
    assert _runs(scene, RunStatus.QUEUED) == _runs(scene, RunStatus.FAILURE) == []


def calls_are_listed_without_results_newest_first(scene: Scene) -> None:
    scene.task()
    claim = scene.begin_work()
    made = []
    for number in range(3):
        scene.clock.advance(MINUTE)
        made.append(_begin_call(scene, claim, "look", at=number))

    def calls(after: PageKey | None, limit: int = 9, user: Any = USER) -> list[tuple[CallId, str]]:
        found = scene.run(
            lambda tx: tx.browse.call_summaries(user, claim.run.id, after, limit=limit)
        )
        return [(call.id, call.summary) for call in found]

    assert calls(None, 2) == [(made[2], "at=2"), (made[1], "at=1")]
    assert calls((scene.clock.now - MINUTE, made[1])) == [(made[0], "at=0")]
    scene.user(MATE)
    with pytest.raises(NotFound):
        calls(None, user=MATE)


def children_stand_under_their_parent(scene: Scene) -> None:
    chat, other = scene.chat(), scene.chat()
    task = scene.task(parent_id=chat.id)
    scene.clock.advance(MINUTE)
    job = _job(scene, chat)
    done = _job(scene, chat, status=Status.ACTIVE, schedule=None, ended_as=EndedAs.COMPLETED)
    alone = scene.task()

    assert _listed(scene, top_level=True, archived=False) == {chat.id, other.id, alone.id}
    assert _listed(scene, archived=False) == {
        *(chat.id, other.id, alone.id, task.id, job.id, done.id)
    }
    # Of a few, a child stands for its parent.
    few_ids = [other.id, job.id, done.id]
    assert _listed(scene, top_level=True, archived=False, among=few_ids) == {other.id, chat.id}
    assert _listed(scene, archived=False, among=[job.id]) == {chat.id, job.id}
    assert _listed(scene, among=[]) == set()
    children = scene.run(lambda tx: tx.browse.children(USER, [chat.id, other.id], limit=9))
    assert list(children) == [chat.id]
    assert children[chat.id].count == 3
    assert [row.conversation.id for row in children[chat.id].open] == [job.id, task.id]
    few = scene.run(lambda tx: tx.browse.children(USER, [chat.id], limit=1))
    assert (few[chat.id].count, len(few[chat.id].open)) == (3, 1)


def a_child_is_listed_if_its_parent_is_not(scene: Scene) -> None:
    parent, chat = scene.chat(), scene.chat()
    scene.change(parent, lambda found: transitions.archive(found, now=scene.clock.now))
    going = scene.task(parent_id=parent.id)
    archived = scene.task(parent_id=chat.id)
    scene.change(archived, lambda found: transitions.archive(found, now=scene.clock.now))
    both = scene.task(parent_id=parent.id)
    scene.change(both, lambda found: transitions.archive(found, now=scene.clock.now))

    assert _listed(scene, top_level=True, archived=False) == {chat.id, going.id}
    assert _listed(scene, top_level=True, archived=True) == {parent.id, archived.id}


def pages_of_jobs_and_others_are_merged_exactly(scene: Scene) -> None:
    chat = scene.chat()
    made = [chat.id]
    for number in range(6):
        # Two at a time were changed at the same moment.
        scene.clock.advance(MINUTE * (number % 2))
        made.append((_job(scene, chat) if number % 3 else scene.task()).id)

    found, after = list[ConversationId](), None
    while True:
        page = scene.run(
            lambda tx, after=after: tx.browse.conversations(  # type: ignore[misc]
                USER, ConversationFilter(), after, limit=2
            )
        )
        found += [row.conversation.id for row in page.conversations]
        if (after := page.next_key) is None:
            break

    assert len(found) == len(made)
    assert set(found) == set(made)


def the_facts_about_work_are_those_of_it_and_of_its_children(scene: Scene) -> None:
    chat = scene.chat()
    alone = _facts(scene, chat)
    assert alone.own is not None
    assert (alone.own.last_run, alone.children, alone.more) == (None, [], 0)

    ended = scene.task(parent_id=chat.id, notify=Notify.ALWAYS)
    scene.finish(scene.begin_work(), Complete(message="Green.", result={"ok": True}))
    scene.clock.advance(MINUTE)
    for _ in range(3):
        scene.task(parent_id=chat.id)
    claim = scene.begin_work()
    _begin_call(scene, claim, "look", at="CI")
    scene.task(parent_id=None)

    facts = _facts(scene, chat, limit=4)
    assert facts.more == 0
    *running, last = facts.children
    assert last.conversation.id == ended.id
    assert last.last_run is not None
    assert (last.last_run.status, last.last_run.text) == (RunStatus.SUCCESS, "Green.")
    assert last.running is None
    (current,) = [fact.running for fact in running if fact.running is not None]
    assert scene.run(lambda tx: tx.browse.count_running(USER)) == 1
    assert scene.run(lambda tx: tx.browse.count_running(MATE)) == 0
    assert current.doing == "look: at=CI"
    assert _facts(scene, chat, limit=1).more == 3


def the_facts_about_work_have_its_open_question(scene: Scene) -> None:
    chat = scene.chat()
    task = scene.task(parent_id=chat.id)
    claim = scene.begin_work()
    scene.finish(claim, ASKS)

    (child,) = _facts(scene, chat).children
    assert child.conversation == scene.load(task)
    assert child.conversation.questions


def _running(scene: Scene, task: Conversation) -> RunActivity | None:
    return scene.run(lambda tx: tx.browse.conversation(USER, task.id)).running


def _seen(scene: Scene, task: Conversation) -> RunActivity:
    running = _running(scene, task)
    assert running is not None
    assert scene.run(lambda tx: tx.browse.activities(MATE, [task.id])) == {}
    return running


def _begin_call(scene: Scene, claim: Claim, tool: str, **arguments: Any) -> CallId:
    call_id = new_call_id()
    call = ToolCall(Tool(server="own", name=tool, definition="d"), arguments)
    scene.run(lambda tx: tx.tool_calls.begin(claim.turn, call_id, call, read_only=True))
    return call_id


def _end_call(scene: Scene, claim: Claim, call_id: CallId) -> None:
    scene.run(lambda tx: tx.tool_calls.end(claim.turn, CallEnd(call_id, "Well.")))


def _runs(
    scene: Scene, status: RunStatus, after: PageKey | None = None, *, limit: int = 9
) -> list[RunRow]:
    return list(scene.run(lambda tx: tx.browse.runs_by_status(USER, status, after, limit=limit)))


def _listed(scene: Scene, **wanted: Any) -> set[ConversationId]:
    page = scene.run(
        lambda tx: tx.browse.conversations(USER, ConversationFilter(**wanted), None, limit=99)
    )
    return {row.conversation.id for row in page.conversations}


def _job(scene: Scene, parent: Conversation, **changes: Any) -> Conversation:
    brief = Brief(title="Count", prompt="Count.", schedule=Immediate(), parent_id=parent.id)
    born = transitions.start_job(new_conversation_id(), USER, brief, now=scene.clock.now)
    return scene.add(Step(conversation=replace(born.conversation, **changes)))


def _facts(scene: Scene, chat: Conversation, *, limit: int = 9) -> WorkFacts:
    return scene.run(lambda tx: tx.browse.work_facts(USER, chat.id, limit=limit))
