"""Changes of the model of a conversation."""

from dataclasses import replace
from datetime import timedelta

import pytest
from support.cases.transition_cases import working
from support.requirements import requirement
from support.stage import make
from support.stage.make import NOON

from backburner.core import transitions
from backburner.core.conversation import Conversation, Kind, Session, Status
from backburner.core.errors import BadRequest, Conflict
from backburner.core.routing import NO_EXIT, AfterDemo, ProfileFilter, Routes, next_profile
from backburner.core.run import RunKind
from backburner.core.schedule import Interval
from backburner.core.transitions import Step, Stops

ROUTES = Routes(names=("claude", "local", "demo"), chat="claude", background="local")
MINUTE = timedelta(minutes=1)
AFTER_DEMO = AfterDemo(demos=frozenset({"demo"}), routes=ROUTES, min_interval=MINUTE)
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
    step = transitions.leave_demo(make.conversation(profile="demo"), AFTER_DEMO)

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
        after_demo = replace(AFTER_DEMO, routes=routes)
        assert transitions.leave_demo(conversation, after_demo) is None


def test_work_that_is_rare_enough_leaves_the_demo() -> None:
    task = replace(
        make.conversation(profile="demo", kind=Kind.TASK), schedule=Interval(MINUTE, anchor=NOON)
    )
    step = transitions.leave_demo(task, AFTER_DEMO)

    assert step is not None
    assert step.conversation.profile == "local"


@requirement("Z-model-change")
def test_a_message_asks_for_a_profile_for_the_next_reply() -> None:
    asked = _hear(CHAT, profile="local")

    assert (asked.reply_profile, asked.work_profile, asked.profile) == ("local", "", "claude")
    # What an earlier message asked for counts until a run has served it.
    assert _hear(asked).reply_profile == "local"
    assert _hear(asked, profile="demo").reply_profile == "demo"


def _hear(chat: Conversation, profile: str | None = None) -> Conversation:
    step = transitions.receive_message(
        chat, "Hello?", message_id=make.MESSAGE, now=NOON, profile=profile
    )
    return step.conversation


@pytest.mark.parametrize(
    ("stops", "reply", "work"),
    [
        (Stops.NOTHING, "local", "demo"),
        (Stops.REPLIES, "", "demo"),
        (Stops.WORK, "local", ""),
        (Stops.EVERYTHING, "", ""),
    ],
)
def test_what_was_asked_for_goes_with_the_runs_that_are_stopped(
    stops: Stops, reply: str, work: str
) -> None:
    asked = replace(CHAT, reply_profile="local", work_profile="demo")
    after = Step(conversation=asked, stops=stops).conversation

    assert (after.reply_profile, after.work_profile) == (reply, work)
    assert replace(after, reply_profile="local", work_profile="demo") == asked


@requirement("Z-model-change")
def test_the_profile_of_the_next_run() -> None:
    begun = make.conversation(profile="demo")
    asked = replace(begun, reply_profile="local")
    reply, work = RunKind.REPLY, RunKind.BACKGROUND

    assert next_profile(CHAT, reply, AFTER_DEMO) == "claude"
    assert next_profile(begun, reply, AFTER_DEMO) == "claude"
    assert next_profile(replace(begun, kind=Kind.TASK), reply, AFTER_DEMO) == "local"
    # A run that was handed back continues where it was.
    assert next_profile(begun, reply, AFTER_DEMO, resumed=True) == "demo"
    assert next_profile(asked, reply, AFTER_DEMO) == "local"
    assert next_profile(asked, reply, AFTER_DEMO, resumed=True) == "local"
    assert next_profile(asked, work, AFTER_DEMO) == "claude"
    assert next_profile(replace(CHAT, work_profile="local"), work, AFTER_DEMO) == "local"


def test_profiles_match_work_that_may_leave_the_demo_for_one_of_them() -> None:
    only_demo = replace(AFTER_DEMO, routes=Routes(names=("demo",), chat="demo"))

    assert AFTER_DEMO.match(["claude", "b"]) == ProfileFilter(
        ("b", "claude"), ("demo",), (Kind.CHAT,)
    )
    assert AFTER_DEMO.match(["local"]).kinds == (Kind.TASK, Kind.JOB, Kind.DISCOVERY)
    assert AFTER_DEMO.match([]).kinds == only_demo.match(["demo"]).kinds == ()
    assert NO_EXIT.match(["claude", ""]) == ProfileFilter(("", "claude"))
