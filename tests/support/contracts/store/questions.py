"""A question is answered once, by whoever is first."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from sqlalchemy import select

from backburner.core import transitions
from backburner.core.conversation import Conversation, MessageRole, Source
from backburner.core.errors import Conflict
from backburner.core.ids import QuestionId, new_message_id
from backburner.core.question import NO, YES, Purpose
from backburner.core.run import RunKind
from backburner.core.transitions import NewMessage, Step
from backburner.core.transitions.step import system_message
from backburner.store import tables
from support.stage import make
from support.stage.make import NOON, USER
from support.stage.scene import Scene


def the_first_answer_wins_and_the_second_changes_nothing(scene: Scene) -> None:
    chat = _asking(scene)
    scene.run(lambda tx: tx.questions.close(USER, make.QUESTION, YES))
    assert scene.load(chat).questions == ()
    before = scene.dump()

    with pytest.raises(Conflict):
        scene.run(lambda tx: tx.questions.close(USER, make.QUESTION, NO))

    assert scene.dump() == before


def of_answers_that_race_exactly_one_wins(scene: Scene) -> None:
    task = scene.task()
    for number in range(5):
        assert _race(scene, task, QuestionId(f"q_{number}")) == 1

    assert len(scene.waiting(task, RunKind.BACKGROUND)) == 5


def a_withdrawn_question_can_no_longer_be_answered(scene: Scene) -> None:
    chat = _asking(scene)
    scene.change(chat, lambda found: Step(conversation=found, withdrawn=(make.QUESTION,)))
    assert scene.load(chat).questions == ()

    with pytest.raises(Conflict):
        scene.run(lambda tx: tx.questions.close(USER, make.QUESTION, YES))

    closed = scene.run(lambda tx: tx.connection.execute(select(tables.questions)).one())
    assert (closed.closed_at, closed.answer) == (NOON, None)


def the_last_proposal_is_found_until_one_was_approved(scene: Scene) -> None:
    task = scene.task()

    def find() -> QuestionId | None:
        found = scene.run(lambda tx: tx.questions.unapproved_proposal(USER, task.id))
        return None if found is None else found.id

    def ask(name: str, answer: str | None) -> None:
        asked = make.question(
            id=QuestionId(name), purpose=Purpose.PROPOSAL, asked_at=scene.clock.now
        )
        scene.run(lambda tx: tx.questions.put(USER, task.id, [asked]))
        scene.clock.advance(timedelta(minutes=1))
        scene.run(lambda tx: tx.questions.close(USER, asked.id, answer))

    scene.run(lambda tx: tx.questions.put(USER, task.id, [make.question()]))
    assert find() is None
    ask("q_c", NO)
    assert find() == "q_c"
    ask("q_a", None)
    assert find() == "q_a"
    ask("q_b", YES)
    assert find() is None
    ask("q_d", NO)
    assert find() is None


def a_message_that_needs_no_run_is_answered_by_what_was_stored_with_it(scene: Scene) -> None:
    chat, said_id = scene.chat(), new_message_id()
    yes = NewMessage(role=MessageRole.USER, content=YES, source=Source.CHAT, id=said_id)
    noted = (system_message("Approved."), system_message("Done."))
    scene.run(lambda tx: tx.conversations.save(Step(conversation=chat, messages=(yes, *noted))))
    later = Step(conversation=chat, messages=(system_message("Of another time."),))
    scene.run(lambda tx: tx.conversations.save(later), now=NOON + timedelta(microseconds=1))

    reply = scene.run(lambda tx: tx.replies.find(USER, chat.id, said_id, ()))

    assert reply is not None
    assert reply.run is None
    assert [message.content for message in reply.messages] == ["Approved.", "Done."]


def _asking(scene: Scene) -> Conversation:
    chat = scene.chat()
    return scene.change(chat, lambda found: transitions.ask_owner(found, make.question()))


def _race(scene: Scene, task: Conversation, asked: QuestionId) -> int:
    """Let two people answer at the same time, and count the winners."""
    question = make.question(id=asked)
    scene.change(task, lambda found: transitions.ask_owner(found, question))
    start = Barrier(2)

    def answer(text: str) -> bool:
        start.wait(timeout=10)
        try:
            scene.change(task, lambda found: transitions.answer(found, asked, text, now=NOON))
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(2) as people:
        return sum(people.map(answer, (YES, NO)))
