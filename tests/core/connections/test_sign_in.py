"""The question that all work waits for whose connection needs a sign-in."""

from dataclasses import replace

import pytest
from support.cases.transition_cases import NINE, proposed, working
from support.stage import make
from support.stage.make import NOON, RUN, USER

from backburner.core import transitions
from backburner.core.connections import sign_in
from backburner.core.connections.connection import Connection, ConnectionState
from backburner.core.connections.scopes import UNNAMED
from backburner.core.conversation import Conversation, EndedAs, PauseReason, Status
from backburner.core.ids import ConnectionId
from backburner.core.question import CONSENT, Purpose, Question
from backburner.core.run import RunKind
from backburner.core.transitions import RECONNECT, STOP, Stops

MAIL = Connection(
    id=ConnectionId("x_mail"),
    user_id=USER,
    name="mail",
    title="Mail",
    url="https://mcp.mail.example/mcp",
    created_at=NOON,
)


def asked(conversation: Conversation, kind: RunKind) -> tuple[Conversation, Question]:
    question = sign_in.reconnect_question(MAIL, run_id=RUN, kind=kind, now=NINE)
    return transitions.ask_owner(conversation, question).conversation, question


def test_the_question_names_the_connection_and_its_server() -> None:
    waiting, question = asked(working(), RunKind.BACKGROUND)

    assert waiting.status is Status.WAITING_INPUT
    assert question.prompt.startswith("Reconnect Mail: mcp.mail.example no longer accepts")
    assert question.options == (RECONNECT, STOP)
    assert question.purpose is Purpose.RECONNECT
    assert question.purpose not in CONSENT
    assert sign_in.is_about(question, MAIL)
    assert not sign_in.is_about(question, replace(MAIL, id=ConnectionId("x_other")))
    assert not sign_in.is_about(make.question(binds_to=question.binds_to), MAIL)
    assert sign_in.server_of(replace(MAIL, url="", program="git")) == "the program git"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (("send", "delete"), "wants further permissions (send, delete). Work that needs it waits"),
        ((UNNAMED,), "wants further permissions. Work that needs it waits"),
    ],
)
def test_the_question_says_which_permissions_are_missing(
    wanted: tuple[str, ...], said: str
) -> None:
    lacking = replace(MAIL, wanted_scopes=wanted)
    question = sign_in.reconnect_question(lacking, run_id=RUN, kind=RunKind.REPLY, now=NINE)

    assert question.prompt.startswith(f"Reconnect Mail: mcp.mail.example {said}")


@pytest.mark.parametrize("kind", list(RunKind))
def test_once_it_is_reconnected_the_work_goes_on(kind: RunKind) -> None:
    waiting, question = asked(working(), kind)

    step = transitions.answer(waiting, question.id, RECONNECT, now=NINE)

    assert (step.conversation.status, step.conversation.questions) == (Status.BACKGROUND, ())
    # The run that waits is the same one.
    assert (step.inbox, step.stops) == ((), Stops.NOTHING)


def test_stopping_ends_the_work_that_asked() -> None:
    waiting, question = asked(working(), RunKind.BACKGROUND)

    step = transitions.answer(waiting, question.id, STOP, now=NINE)

    assert (step.conversation.ended_as, step.stops) == (EndedAs.CANCELLED, Stops.WORK)


def test_stopping_a_reply_leaves_the_work_of_its_conversation() -> None:
    waiting, question = asked(working(), RunKind.REPLY)

    step = transitions.answer(waiting, question.id, STOP, now=NINE)

    assert (step.conversation.status, step.stops) == (Status.BACKGROUND, Stops.REPLIES)


def test_other_work_that_needs_it_is_paused_and_resumes() -> None:
    step = transitions.wait_for_sign_in(working(), sign_in.describe_wait(MAIL))
    paused = step.conversation
    assert (paused.status, paused.pause_reason) == (Status.ACTIVE, PauseReason.SIGNED_OUT)
    assert "until you reconnect Mail" in step.messages[0].content
    assert transitions.resume_after_allowance(paused, now=NINE).conversation == paused
    # Its user pauses it beyond the sign-in.
    assert transitions.pause(paused).conversation.pause_reason is PauseReason.USER

    resumed = transitions.resume_after_sign_in(paused, now=NINE).conversation

    assert (resumed.status, resumed.pause_reason) == (Status.BACKGROUND, None)
    assert transitions.wait_for_sign_in(proposed(), "").conversation == proposed()


@pytest.mark.parametrize("reason", [None, PauseReason.SIGNED_OUT, PauseReason.ALLOWANCE])
def test_work_is_paused_that_loses_a_connection(reason: PauseReason | None) -> None:
    step = transitions.lose_connection(replace(working(), pause_reason=reason), "Mail")

    paused = step.conversation
    assert (paused.status, paused.pause_reason) == (Status.ACTIVE, PauseReason.CONNECTION_REMOVED)
    assert (step.drops_queued, len(step.messages), len(step.notices)) == (True, 1, 1)


@pytest.mark.parametrize(
    "conversation",
    [
        make.conversation(),
        proposed(),
        replace(working(), status=Status.ARCHIVED),
        replace(working(), pause_reason=PauseReason.FAILURES),
    ],
)
def test_what_does_not_work_loses_a_connection_without_a_word(conversation: Conversation) -> None:
    step = transitions.lose_connection(conversation, "Mail")

    assert (step.conversation, step.messages) == (conversation, ())


def test_the_first_sign_in_is_asked_for_in_other_words() -> None:
    new = replace(MAIL, state=ConnectionState.SIGNING_IN)
    question = sign_in.reconnect_question(new, run_id=RUN, kind=RunKind.BACKGROUND, now=NINE)

    assert "Reconnect Mail: you have not signed in to mcp.mail.example yet." in question.prompt


def test_the_agent_is_told_what_became_of_the_sign_in() -> None:
    out = replace(MAIL, state=ConnectionState.SIGNED_OUT)
    told = [sign_in.describe_return(one) for one in (MAIL, out, None)]

    assert [text.split(". ")[0] for text in told] == [
        "mail is signed in again",
        "mail still needs a sign-in",
        "The connection that this waited for was removed",
    ]


def test_a_question_without_a_point_is_withdrawn_and_the_work_goes_on() -> None:
    waiting, question = asked(working(), RunKind.BACKGROUND)

    step = transitions.withdraw(waiting, question.id, now=NINE)

    assert (step.conversation.status, step.withdrawn) == (Status.BACKGROUND, (question.id,))
    assert step.messages[0].content.endswith("It was withdrawn; nobody answered it.")
