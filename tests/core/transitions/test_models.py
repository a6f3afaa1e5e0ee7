"""Changes of the model of a conversation."""

from dataclasses import replace
from datetime import timedelta

import pytest
from support.cases.transition_cases import working
from support.requirements import requirement
from support.stage import make
from support.stage.make import NOON

from backburner.core import transitions
from backburner.core.conversation import Kind, Session, Status
from backburner.core.errors import BadRequest, Conflict
from backburner.core.routing import Routes
from backburner.core.schedule import Interval

ROUTES = Routes(names=("claude", "local", "demo"), chat="claude", background="local")
DEMO = frozenset({"demo"})
MINUTE = timedelta(minutes=1)
CHAT = make.conversation(profile="claude", session=Session("claude", "s1"))


@requirement("Z-model-change")
def test_another_model_starts_without_the_session_of_the_old_one() -> None:
    after = transitions.with_model(CHAT, ROUTES, "local")

    assert (after.profile, after.requested_profile, after.session) == ("local", "local", None)
    (note,) = transitions.model_note(CHAT, after)
    assert note.content == "The model was changed to local."


def test_the_same_model_keeps_the_session_and_says_nothing() -> None:
    after = transitions.with_model(CHAT, ROUTES, "claude")

    assert after == replace(CHAT, requested_profile="claude")
    assert transitions.model_note(CHAT, after) == ()


def test_no_name_stands_for_the_default_of_its_kind() -> None:
    chosen = replace(working(kind=Kind.TASK), profile="claude", requested_profile="claude")
    after = transitions.with_model(chosen, ROUTES, None)

    assert (after.profile, after.requested_profile) == ("local", None)


def test_an_unknown_model_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadRequest, match="Available: claude, local, demo"):
        transitions.with_model(CHAT, ROUTES, "clod")


def test_the_model_of_a_job_and_of_an_archived_conversation_stays() -> None:
    with pytest.raises(Conflict, match="job"):
        transitions.with_model(working(kind=Kind.JOB), ROUTES, "local")
    with pytest.raises(Conflict, match="archived"):
        transitions.with_model(replace(CHAT, status=Status.ARCHIVED), ROUTES, "local")


@requirement("Z-model-change")
def test_a_chat_that_began_with_the_demo_moves_to_the_model_of_chats() -> None:
    step = transitions.leave_demo(
        make.conversation(profile="demo"), ROUTES, DEMO, min_interval=MINUTE
    )

    assert step is not None
    assert step.conversation.profile == "claude"
    assert [message.content for message in step.messages] == [
        "This began with the demo. It uses claude from now on."
    ]


def test_what_stays_with_the_demo() -> None:
    begun = make.conversation(profile="demo")
    only_demo = Routes(names=("demo",), chat="demo")
    frequent = replace(begun, schedule=Interval(timedelta(seconds=10), anchor=NOON))

    for conversation, routes in (
        (begun, only_demo),
        (replace(begun, requested_profile="demo"), ROUTES),
        (replace(begun, status=Status.ARCHIVED), ROUTES),
        (replace(begun, profile="local"), ROUTES),
        (frequent, ROUTES),
    ):
        assert transitions.leave_demo(conversation, routes, DEMO, min_interval=MINUTE) is None


def test_work_that_is_rare_enough_leaves_the_demo() -> None:
    task = replace(
        make.conversation(profile="demo", kind=Kind.TASK), schedule=Interval(MINUTE, anchor=NOON)
    )
    step = transitions.leave_demo(task, ROUTES, DEMO, min_interval=MINUTE)

    assert step is not None
    assert step.conversation.profile == "local"
