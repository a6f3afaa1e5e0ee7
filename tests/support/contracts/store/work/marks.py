"""What owners have seen of their conversations is kept, and is theirs alone to change."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import product

import pytest
from sqlalchemy import Update, update

from backburner.core import transitions
from backburner.core.conversation import (
    Conversation,
    Destination,
    EndedAs,
    MessageRole,
    PauseReason,
    Status,
)
from backburner.core.errors import NotFound
from backburner.core.ids import (
    ConversationId,
    MessageId,
    RunId,
    derive_question_id,
    new_conversation_id,
)
from backburner.core.notice import Notice, NoticeKind
from backburner.core.outcome import NeedsInput
from backburner.core.question import NewQuestion, QuestionType
from backburner.core.run import Failure, FailureKind, RunEnding, RunStatus
from backburner.core.transitions.step import Step, system_message, worker_message
from backburner.core.work.list_states import ListState, list_states
from backburner.ports import (
    ConversationFilter,
    ConversationPage,
    ConversationRow,
    EventKind,
    PageKey,
    View,
)
from backburner.store import tables
from backburner.store.tx import Tx
from support.stage import make
from support.stage.make import NOON, USER
from support.stage.scene import Scene

MINUTE = timedelta(minutes=1)
BEFORE = NOON - MINUTE
ASKS = NeedsInput(
    message="One thing.", question=NewQuestion(type=QuestionType.INPUT, prompt="Which branch?")
)


def what_agents_say_is_unseen_until_its_owner_looks(scene: Scene) -> None:
    chat = scene.chat()
    scene.say(chat)
    assert _unseen(scene, chat) == 0
    _reply(scene, "Hello.")
    assert _unseen(scene, chat) == 1
    scene.say(chat, "And?")
    _reply(scene, "That is all.")
    assert _unseen(scene, chat) == 2

    scene.clock.advance(MINUTE)
    assert _see(scene, chat)

    assert _unseen(scene, chat) == 0
    assert not _see(scene, chat)
    scene.say(chat, "Thanks.")
    _reply(scene, "You are welcome.")
    assert _unseen(scene, chat) == 1


def only_what_came_up_to_a_message_is_seen_and_stays_so(scene: Scene) -> None:
    chat = scene.chat()
    for text in ("One", "Two", "Three"):
        scene.change(chat, partial(_told, text=text))
        scene.clock.advance(MINUTE)
    *_, two, three = reversed(_message_ids(scene, chat))

    assert _see(scene, chat, two)
    assert _unseen(scene, chat) == 1
    assert _see(scene, chat, three)
    assert not _see(scene, chat, two)
    assert _unseen(scene, chat) == 0


def nothing_is_seen_up_to_a_message_of_another_conversation(scene: Scene) -> None:
    chat, other = scene.chat(), scene.chat()
    for one in (chat, other):
        scene.change(one, lambda found: _told(found, "News."))

    with pytest.raises(NotFound):
        _see(scene, chat, _message_ids(scene, other)[0])

    assert _unseen(scene, chat) == 1


def what_the_owner_did_themselves_is_no_news(scene: Scene) -> None:
    task = scene.task()
    scene.finish(scene.begin_work(), ASKS)
    _see(scene, task)
    scene.answer(task, "main")
    assert "Answer: main" in _row(scene, task).facts.last_message.excerpt  # type: ignore[union-attr]
    assert _unseen(scene, task) == 0

    scene.change(task, lambda found: transitions.archive(found, now=scene.clock.now))

    assert _unseen(scene, task) == 0


def an_open_question_is_unseen_until_its_owner_looks(scene: Scene) -> None:
    task = scene.task()
    scene.change(task, lambda found: transitions.ask_owner(found, make.question()))
    assert _unseen(scene, task) == 1

    scene.clock.advance(MINUTE)
    assert _see(scene, task)

    assert _unseen(scene, task) == 0
    assert not _see(scene, task)


def what_was_replaced_is_not_counted(scene: Scene) -> None:
    chat = scene.chat()
    scene.say(chat)
    _reply(scene, "Hello.")

    scene.run(lambda tx: tx.messages.remove_last(USER, chat.id))

    row = _row(scene, chat)
    assert (row.unseen, row.facts.last_message) == (0, None)


def more_than_a_hundred_messages_are_not_counted(scene: Scene) -> None:
    chat = scene.chat()
    scene.change(
        chat,
        lambda found: Step(
            conversation=found, messages=tuple(system_message(f"{n}") for n in range(101))
        ),
    )

    assert _unseen(scene, chat) == 100


def a_look_moves_no_conversation_in_a_list_and_is_told_of(scene: Scene) -> None:
    chat = scene.chat()
    scene.change(chat, lambda found: _told(found, "News."))
    before, number = _row(scene, chat), scene.run(lambda tx: tx.events.latest(USER))
    scene.clock.advance(MINUTE)

    _see(scene, chat)

    assert _row(scene, chat).updated_at == before.updated_at
    (told,) = scene.run(lambda tx: tx.events.after(USER, number, limit=9))
    assert (told.kind, told.conversation) == (EventKind.CONVERSATION, chat.id)
    _see(scene, chat)
    assert scene.run(lambda tx: tx.events.after(USER, told.number, limit=9)) == []


def steps_and_runs_leave_what_was_seen(scene: Scene) -> None:
    task = scene.task()
    scene.change(task, lambda found: _told(found, "Before."))
    claim = scene.begin_work()
    _see(scene, task)
    scene.change(task, lambda found: transitions.rename(found, "Other"))

    scene.finish(claim)

    # Only what the run said.
    assert _unseen(scene, task) == 1


def the_last_message_is_shown_as_plain_text(scene: Scene) -> None:
    chat = scene.chat()
    assert _row(scene, chat).facts.last_message is None
    scene.change(chat, lambda found: _told(found, f"# Done\n\n**All** is `green`. {'x ' * 400}"))

    last = _row(scene, chat).facts.last_message

    assert last is not None
    assert last.excerpt.startswith("Done All is green. x x")
    assert len(last.excerpt) <= 121
    assert (last.role, last.created_at) == (MessageRole.ASSISTANT, scene.clock.now)
    assert last.id == _message_ids(scene, chat)[0]


def a_message_awaits_its_reply_until_a_run_has_served_it(scene: Scene) -> None:
    chat, other = scene.chat(), scene.chat()
    scene.say(chat)
    assert _row(scene, chat).facts.awaits_reply
    assert not _row(scene, other).facts.awaits_reply

    _reply(scene, "Hello.")

    assert not _row(scene, chat).facts.awaits_reply


def a_failed_reply_is_told_until_its_owner_looks_or_another_message_follows(scene: Scene) -> None:
    failed, seen, again = (scene.chat() for _ in range(3))
    for chat in (failed, seen, again):
        scene.say(chat)
        _fail_reply(scene)
        assert _row(scene, chat).facts.reply_failed
    _see(scene, seen)
    scene.say(again)
    task = scene.task()
    scene.finish(scene.begin_work(), Failure(FailureKind.TOOL, "It broke."))

    shown = {
        chat.id for chat in (failed, seen, again, task) if _row(scene, chat).facts.reply_failed
    }
    assert shown == {failed.id}


def pinned_conversations_are_listed_apart_page_by_page(scene: Scene) -> None:
    made = []
    for number in range(6):
        scene.clock.advance(MINUTE)
        made.append(scene.chat() if number else scene.task(parent_id=make.OTHER))
    scene.clock.advance(MINUTE)
    for one in (made[0], made[2], made[5]):
        _pin(scene, one)

    assert _pages(scene, pinned=True) == [made[5].id, made[2].id, made[0].id]
    assert _pages(scene, pinned=False) == [made[4].id, made[3].id, made[1].id]
    assert _row(scene, made[2]).facts.pinned_at == scene.clock.now
    assert scene.run(lambda tx: tx.marks.count_pinned(USER)) == 3

    _pin(scene, made[2], pinned=False)

    assert _pages(scene, pinned=True) == [made[5].id, made[0].id]
    assert _row(scene, made[2]).facts.pinned_at is None


def a_pin_moves_no_conversation_in_a_list_and_stays(scene: Scene) -> None:
    task = scene.task()
    before = _row(scene, task)
    claim = scene.begin_work()
    scene.clock.advance(MINUTE)

    _pin(scene, task)

    assert _row(scene, task).updated_at == before.updated_at
    pinned_at = scene.clock.now
    scene.clock.advance(MINUTE)
    scene.finish(claim)
    assert _row(scene, task).facts.pinned_at == pinned_at


def conversations_are_listed_by_their_states_as_people_think_of_them(scene: Scene) -> None:
    scene.user()
    made = [*_in_every_state(scene)]
    for one in made:
        asked = (replace(make.question(), id=derive_question_id(one.id)),)
        waits = one.status is Status.WAITING_INPUT
        scene.add(Step(conversation=replace(one, questions=()), asked=asked if waits else ()))
    running = scene.task()
    scene.run(lambda tx: tx.connection.execute(_move_all_but(running)))
    scene.begin_work()

    for state in ListState:
        expected = {
            one.id
            for one in [*made, running]
            if state in list_states(one, is_running=one is running)
        }
        found = _list(scene, ConversationFilter(state=state), None, limit=900)
        assert {row.conversation.id for row in found.conversations} == expected, state
        assert expected


def _in_every_state(scene: Scene) -> Iterator[Conversation]:
    plain = make.conversation(created_at=scene.clock.now)
    for status in Status:
        pauses = (None, *PauseReason) if status is Status.ACTIVE else (None,)
        for pause, end, failures in product(pauses, (None, *EndedAs), (0, 1)):
            yield replace(
                plain,
                id=new_conversation_id(),
                status=status,
                pause_reason=pause,
                ended_as=end,
                failures=failures,
            )


def _move_all_but(running: Conversation) -> Update:
    """Let nothing else be due."""
    table = tables.conversations
    return update(table).where(table.c.id != running.id).values(next_run_at=None)


def _pin(scene: Scene, conversation: Conversation, *, pinned: bool = True) -> None:
    scene.run(lambda tx: tx.marks.pin(tx.conversations.lock(USER, conversation.id), pinned=pinned))


def _pages(scene: Scene, *, pinned: bool) -> list[ConversationId]:
    """List everything, two on a page."""
    shown, after = list[ConversationId](), None
    while True:
        page = _list(scene, ConversationFilter(pinned=pinned), after, limit=2)
        shown += [row.conversation.id for row in page.conversations]
        if (after := page.next_key) is None:
            return shown


def a_deleted_conversation_is_not_there_until_it_is_shown_again(scene: Scene) -> None:
    parent = scene.chat()
    job = scene.task(parent_id=parent.id)
    claim = scene.begin_work()
    told = Notice(NoticeKind.RESULT, "Told.")
    place = replace(job, reports_to=(Destination("discord", "somebody"),))
    scene.run(lambda tx: tx.notices.put(place, [told], cause="told", run_id=None))
    scene.finish(claim)
    before = _everything(scene, job, claim.run.id)
    assert all(before.values()), before

    _delete(scene, job)

    gone = _everything(scene, job, claim.run.id)
    assert not any(gone.values()), gone
    assert scene.run(lambda tx: tx.marks.is_deleted(USER, job.id))
    assert scene.run(lambda tx: tx.conversations.children(USER, parent.id)) == (job.id,)
    deleted = scene.run(lambda tx: tx.marks.lock_deleted(USER, job.id))
    assert (deleted.deleted_at, deleted.deleted_with) == (scene.clock.now, job.id)
    assert not deleted.was_archived

    scene.run(lambda tx: tx.marks.show(USER, job.id))

    shown = _everything(scene, job, claim.run.id)
    assert all(shown.values()), shown
    with pytest.raises(NotFound):
        scene.run(lambda tx: tx.marks.lock_deleted(USER, job.id))


def what_was_deleted_is_found_by_the_time_when_it_was(scene: Scene) -> None:
    first, second, below, kept = (scene.chat() for _ in range(4))
    for one, root in ((first, first), (below, second), (second, second)):
        _delete(scene, one, root=root)
        scene.clock.advance(MINUTE)

    def found(before: datetime) -> Sequence[tuple[str, str]]:
        return scene.run(lambda tx: tx.marks.deleted_before(before, limit=9))

    assert found(NOON - MINUTE) == []
    assert found(NOON) == [(USER, first.id)]
    assert found(scene.clock.now) == [(USER, first.id), (USER, second.id)]
    assert scene.load(kept) == kept


def a_run_in_a_deleted_conversation_ends_and_steps_leave_it_deleted(scene: Scene) -> None:
    task = scene.task()
    claim = scene.begin_work()
    _delete(scene, task)

    scene.finish(claim)

    assert scene.run(lambda tx: tx.marks.is_deleted(USER, task.id))
    assert scene.claim_work() is None


def _delete(scene: Scene, conversation: Conversation, *, root: Conversation | None = None) -> None:
    def delete(tx: Tx) -> None:
        before = tx.conversations.lock(USER, conversation.id)
        tx.conversations.save(transitions.hide(before, now=scene.clock.now), cause="deleted")
        tx.marks.hide(before, root=(root or conversation).id)

    scene.run(delete)


def _everything(scene: Scene, of: Conversation, run: RunId) -> dict[str, object]:
    """Look for a conversation in every way; what is not found is empty."""
    views = (None, *View)
    looks: dict[str, Callable[[Tx], object]] = {
        "load": lambda tx: tx.conversations.load(USER, of.id).id,
        "lock": lambda tx: tx.conversations.lock(USER, of.id).id,
        "require": lambda tx: tx.browse.require(USER, of.id),
        "one": lambda tx: tx.browse.conversation(USER, of.id).conversation.id,
        "messages": lambda tx: tx.browse.messages(USER, of.id, None, limit=9),
        "runs": lambda tx: tx.browse.runs(USER, of.id, None, limit=9),
        "calls": lambda tx: [tx.browse.call_summaries(USER, run, None, limit=9)],
        "all runs": lambda tx: tx.browse.runs_by_status(USER, RunStatus.SUCCESS, None, limit=9),
        "notices": lambda tx: tx.browse.notices(USER, None, unseen=False, limit=9),
        "away": lambda tx: tx.away.runs_by_conversation(USER, BEFORE, limit=9),
        "told": lambda tx: tx.away.recent_notices(USER, BEFORE, limit=9),
        "tasks": lambda tx: tx.tasks.by_title_or_id(USER, of.id, limit=9),
        "facts": lambda tx: tx.browse.work_facts(USER, of.parent_id or of.id, limit=9).children,
        "deliveries": _due_deliveries,
        "listed": lambda tx: [
            row.conversation.id
            for view in views
            for row in tx.browse.conversations(
                USER, ConversationFilter(view=view), None, limit=9
            ).conversations
            if row.conversation.id == of.id
        ],
        "searched": lambda tx: (
            tx.browse.conversations(
                USER, ConversationFilter(search="work"), None, limit=9
            ).conversations
        ),
    }
    return {name: _try(scene, look) for name, look in looks.items()}


def _due_deliveries(tx: Tx) -> list[object]:
    """Lease what is to be delivered, and give it back."""
    part = tx.deliveries.lease(lease=MINUTE)
    tx.deliveries.release_all()
    return [] if part is None else [part.key]


def _try(scene: Scene, look: Callable[[Tx], object]) -> object:
    try:
        return scene.run(look)
    except NotFound:
        return None


def _list(
    scene: Scene, wanted: ConversationFilter, after: PageKey | None, *, limit: int
) -> ConversationPage:
    return scene.run(lambda tx: tx.browse.conversations(USER, wanted, after, limit=limit))


def _told(found: Conversation, text: str) -> Step:
    return Step(conversation=found, messages=worker_message(text))


def _reply(scene: Scene, text: str) -> None:
    claim = scene.begin_reply()
    scene.finish(claim, text, served=scene.items(claim))


def _fail_reply(scene: Scene) -> None:
    claim, failure = scene.begin_reply(), Failure(FailureKind.MODEL, "It broke.")
    served = [item.id for item in scene.items(claim)]
    ending = RunEnding(status=RunStatus.FAILURE, failure=failure)

    def commit(tx: Tx) -> None:
        step = transitions.fail_reply(tx.turns.hold(claim.turn), failure)
        tx.turns.commit(claim.turn, step, ending, served=served)

    scene.run(commit)


def _see(scene: Scene, conversation: Conversation, up_to: MessageId | None = None) -> bool:
    return scene.run(lambda tx: tx.marks.see(tx.conversations.lock(USER, conversation.id), up_to))


def _row(scene: Scene, conversation: Conversation) -> ConversationRow:
    shown = scene.run(lambda tx: tx.browse.conversation(USER, conversation.id))
    found = scene.run(lambda tx: tx.browse.conversations(USER, ConversationFilter(), None, limit=9))
    assert shown in found.conversations
    for unread in (True, False):
        listed = _list(scene, ConversationFilter(unread=unread), None, limit=9)
        assert (shown in listed.conversations) == (unread is (shown.unseen > 0))
    return shown


def _unseen(scene: Scene, conversation: Conversation) -> int:
    return _row(scene, conversation).unseen


def _message_ids(scene: Scene, conversation: Conversation) -> list[MessageId]:
    """List the messages, newest first."""
    found = scene.run(lambda tx: tx.browse.messages(USER, conversation.id, None, limit=9))
    return [message.id for message in found]
