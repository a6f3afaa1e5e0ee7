"""What belongs to a conversation comes back as it was: messages, items, questions, runs, grants."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from backburner.core import transitions
from backburner.core.conversation import Conversation, MessageRole, Source, Status
from backburner.core.ids import ConnectionId, GrantId, QuestionId, new_message_id
from backburner.core.question import Purpose, Question, QuestionType
from backburner.core.run import (
    Failure,
    FailureKind,
    ItemKind,
    NewItem,
    RunEnding,
    RunKind,
    RunStatus,
)
from backburner.core.tool_policy import Grant
from backburner.core.transitions import NewMessage, Step
from backburner.core.validation import MAX_MESSAGE_CHARS
from backburner.store.tx import Tx
from support.contracts.store.conversations import ANY_TEXT, ASKED, LATER
from support.stage import make
from support.stage.make import NOON, USER
from support.stage.scene import Scene


def the_newest_messages_are_read_in_the_order_they_were_written(scene: Scene) -> None:
    chat = scene.chat()
    written = [
        NewMessage(role=role, content=f"{role} {text}", source=source, outside=outside)
        for role in MessageRole
        for source, outside in ((Source.CHAT, False), (Source.WORKER, True))
        for text in (ANY_TEXT, "")
    ]
    longest = NewMessage(role=MessageRole.USER, content="é" * MAX_MESSAGE_CHARS, source=Source.CHAT)

    def append(tx: Tx) -> None:
        for said in (written[:5], written[5:], [longest]):
            tx.messages.append(USER, chat.id, said, run_id=make.RUN)

    scene.run(append)
    found = scene.run(lambda tx: tx.messages.recent(USER, chat.id, limit=8))

    newest = [*written, longest][-8:]
    assert [(one.role, one.content, one.source, one.outside) for one in found] == [
        (one.role, one.content, one.source, one.outside) for one in newest
    ]
    assert {(one.run_id, one.created_at) for one in found} == {(make.RUN, NOON)}


def a_message_keeps_the_id_it_was_given(scene: Scene) -> None:
    chat, given = scene.chat(), new_message_id()
    said = [_message(given), _message(None)]
    scene.run(lambda tx: tx.messages.append(USER, chat.id, said, run_id=None))

    one, two = scene.run(lambda tx: tx.messages.recent(USER, chat.id, limit=10))

    assert one.id == given
    assert two.id not in ("", given)


def an_item_comes_back_as_it_was_put_in(scene: Scene) -> None:
    chat = scene.chat()
    made = [
        NewItem(kind=kind, run_kind=run_kind, at_once=at_once, content={"text": ANY_TEXT})
        for run_kind in RunKind
        for kind in ItemKind
        for at_once in (True, False)
    ]

    def put(tx: Tx) -> None:
        for number, item in enumerate(made):
            tx.set_time(NOON + timedelta(microseconds=number), 0)
            tx.inbox.put(USER, chat.id, [item])

    scene.run(put)

    found = [item for kind in RunKind for item in scene.waiting(chat, kind)]
    assert [(one.kind, one.run_kind, one.at_once, one.content) for one in found] == [
        (one.kind, one.run_kind, one.at_once, one.content) for one in made
    ]


def a_question_comes_back_as_it_was_asked(scene: Scene) -> None:
    chat = scene.chat()
    bare = Question(
        id=make.QUESTION,
        purpose=Purpose.QUESTION,
        type=QuestionType.INPUT,
        prompt="",
        asked_at=NOON - timedelta(hours=1),
    )
    kinds: list[tuple[Question, dict[str, Any]]] = [
        *((bare, {"purpose": purpose}) for purpose in Purpose),
        *((ASKED, {"type": kind}) for kind in QuestionType),
        *((ASKED, {"run_kind": kind}) for kind in RunKind),
    ]
    asked = tuple(
        replace(
            one,
            id=QuestionId(f"q_{number}"),
            asked_at=one.asked_at + timedelta(seconds=number),
            **changes,
        )
        for number, (one, changes) in enumerate(kinds)
    )
    for one in reversed(asked):
        scene.change(chat, partial(_ask, question=one))

    assert scene.load(chat).questions == asked


def a_question_that_is_put_off_says_when_it_comes_up_again(scene: Scene) -> None:
    chat = scene.chat()
    scene.change(chat, partial(_ask, question=ASKED))
    put_off = replace(ASKED, remind_at=LATER + timedelta(days=2), reminders=4)

    scene.run(lambda tx: tx.questions.snooze(USER, put_off))

    assert scene.load(chat).questions == (put_off,)


def a_run_comes_back_with_how_it_ended(scene: Scene) -> None:
    _ends(scene, RunEnding(status=RunStatus.SUCCESS, result=ANY_TEXT, tokens=2**40))
    _ends(scene, RunEnding(status=RunStatus.CANCELLED))
    for kind in FailureKind:
        failure = Failure(kind, ANY_TEXT)
        _ends(scene, RunEnding(status=RunStatus.FAILURE, failure=failure, tokens=1))


def a_grant_comes_back_as_it_was_given(scene: Scene) -> None:
    chat = scene.chat()
    once = Grant(
        id=GrantId("g_once"),
        server=ANY_TEXT,
        tool=ANY_TEXT,
        definition="d",
        connection=ConnectionId("n_mail"),
        call="digest",
        expires_at=LATER,
    )
    lasting = Grant(
        id=GrantId("g_lasting"),
        server="backburner",
        tool="run_command",
        definition="",
        words=("git", ANY_TEXT),
    )
    scene.run(lambda tx: tx.grants.give(USER, chat.id, [once, lasting]))

    found = scene.run(lambda tx: tx.grants.valid(USER, chat.id))
    assert {grant.id: grant for grant in found} == {once.id: once, lasting.id: lasting}


def all_of_a_step_is_written_or_nothing(scene: Scene) -> None:
    task = scene.task()
    before = scene.dump()
    twice = _message(new_message_id())
    step = Step(
        conversation=replace(task, title="Another"), asked=(ASKED,), messages=(twice, twice)
    )

    with pytest.raises(IntegrityError):
        scene.run(lambda tx: tx.conversations.save(step, cause="cause"))

    assert scene.dump() == before


def _message(given: Any) -> NewMessage:
    return NewMessage(role=MessageRole.USER, content="Hello.", source=Source.CHAT, id=given)


def _ends(scene: Scene, ending: RunEnding) -> None:
    scene.task()
    claim = scene.begin_work()
    assert scene.run(lambda tx: tx.runs.load(USER, claim.run.id)) == claim.run
    scene.clock.advance(timedelta(seconds=1, microseconds=1))
    step = transitions.archive(claim.conversation, now=scene.clock.now)

    scene.run(lambda tx: tx.turns.commit(claim.turn, step, ending))

    assert scene.run(lambda tx: tx.runs.load(USER, claim.run.id)) == replace(
        claim.run,
        status=ending.status,
        ended_at=scene.clock.now,
        failure=ending.failure,
        result=ending.result,
        tokens=ending.tokens,
    )


def _ask(found: Conversation, question: Question) -> Step:
    waiting = replace(found, status=Status.WAITING_INPUT)
    return Step(conversation=waiting, asked=(question,))
