"""A conversation comes back as it was: every field, every kind, any text."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from backburner.core import transitions
from backburner.core.conversation import (
    MAX_STATE_BYTES,
    MAX_STEP_CHARS,
    MAX_TITLE_CHARS,
    Author,
    Conversation,
    Destination,
    EndedAs,
    Kind,
    Notify,
    OnRepeatedFailure,
    PauseReason,
    Session,
    State,
    Status,
    Use,
    WorkFolder,
    check_state,
)
from backburner.core.ids import ConversationId, RunId, UserId, new_conversation_id
from backburner.core.question import Purpose, Question, QuestionType
from backburner.core.run import RunKind
from backburner.core.schedule import (
    After,
    AfterCondition,
    CatchUp,
    Cron,
    Event,
    Immediate,
    Interval,
    Scheduled,
)
from backburner.core.transitions import Step
from backburner.core.validation import MAX_INTEGER, MAX_JSON_DEPTH, json_size
from backburner.store.tx import Tx
from support.stage import make
from support.stage.make import NOON, STRANGER, USER
from support.stage.scene import Scene

#: Quotes, placeholders, controls, both directions, and letters that are more than one.
ANY_TEXT = "'\"\\ % %s :x {} \t\r\n\x01\x7f \u202e\u00a0 é e\u0301 ﷽ 漢字 👩🏽‍🚀 \U0001d54f \uffff"
LATER = NOON + timedelta(days=1, microseconds=1)
ASKED = Question(
    id=make.QUESTION,
    purpose=Purpose.APPROVAL,
    type=QuestionType.CHOICE,
    prompt=ANY_TEXT,
    asked_at=NOON + timedelta(microseconds=3),
    options=("yes", ANY_TEXT),
    run_id=make.RUN,
    run_kind=RunKind.REPLY,
    binds_to={"calls": [{"tool": ANY_TEXT, "count": 1}]},
    remind_at=LATER,
    reminders=3,
    expires_at=LATER + timedelta(days=1),
    default="yes",
)
#: No field has its default.
FULL = Conversation(
    id=make.CONVERSATION,
    user_id=USER,
    kind=Kind.JOB,
    created_at=NOON + timedelta(microseconds=1),
    status=Status.WAITING_INPUT,
    title=ANY_TEXT,
    created_by=Author.AGENT,
    parent_id=make.OTHER,
    set_up_by=make.RUN,
    parent_run_id=make.RUN,
    parent_message_id=make.MESSAGE,
    root_id=make.OTHER,
    keeps_only=True,
    batch=ANY_TEXT,
    schedule=Interval(timedelta(seconds=90.5), anchor=LATER, catch_up=CatchUp.SKIP),
    schedule_revision=7,
    next_run_at=LATER,
    settled_until=NOON,
    pause_reason=PauseReason.ALLOWANCE,
    state=State(
        context={"prompt": ANY_TEXT},
        step=ANY_TEXT,
        data={ANY_TEXT: [None, True, 1]},
        outside=frozenset({"step", f"data.{ANY_TEXT}"}),
    ),
    questions=(ASKED,),
    session=Session("claude", ANY_TEXT, tokens=7),
    summarized=True,
    outside_read=True,
    fresh_at=NOON,
    ended_as=EndedAs.COMPLETED,
    ended_at=LATER,
    resuming=True,
    resume_count=2,
    retrieved_at=LATER,
    failures=1,
    crashes=2,
    again_count=3,
    again_since=NOON,
    unattended_replies=4,
    run_count=5,
    max_runs=6,
    last_run_at=NOON,
    run_timeout=timedelta(minutes=1, microseconds=1),
    folder=WorkFolder("/srv/app", "0123456789abcdef", read_only=True),
    tools=("read", ANY_TEXT),
    connections=("mail", "wiki"),
    uses=frozenset(Use),
    agent=ANY_TEXT,
    requested_profile=ANY_TEXT,
    profile=ANY_TEXT,
    reply_profile=ANY_TEXT,
    work_profile=ANY_TEXT,
    on_repeated_failure=OnRepeatedFailure.PAUSE,
    notify=Notify.NEVER,
    last_result_hash="abc",
    reports_to=(Destination("discord", ANY_TEXT), Destination("web", "")),
)
TIMES = (
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2026, 3, 29, 1, 30, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
)
#: Each field with the values that matter, one at a time.
CHOICES: dict[str, Iterable[Any]] = {
    "schedule": (
        None,
        Immediate(),
        Scheduled(LATER),
        *(Cron("*/5 8-18 * * MON-FRI", "America/St_Johns", catch_up) for catch_up in CatchUp),
        *(Interval(timedelta(seconds=1), NOON, catch_up) for catch_up in CatchUp),
        Interval(timedelta(days=3660), anchor=LATER),
        Event("file", {}),
        Event(ANY_TEXT, {"path": ANY_TEXT, "deep": [{"n": 1.5}]}),
        *(After(make.OTHER, on, once) for on in AfterCondition for once in (True, False)),
    ),
    "kind": Kind,
    "status": Status,
    "created_by": Author,
    "pause_reason": (None, *PauseReason),
    "ended_as": (None, *EndedAs),
    "notify": Notify,
    "on_repeated_failure": OnRepeatedFailure,
    "tools": (None, (), ("one",)),
    "connections": (None, (), ("mail",)),
    "session": (None, Session("", ""), Session("local", "")),
    "reports_to": ((), (Destination("", ""),)),
    "resuming": (True, False),
    "run_timeout": (None, timedelta.resolution, timedelta(days=3660)),
    "next_run_at": (None, *TIMES),
    "created_at": TIMES,
}


def a_conversation_is_loaded_with_every_field_it_was_added_with(scene: Scene) -> None:
    scene.user()
    for field in fields(Conversation):
        made = field.default_factory() if field.default_factory is not MISSING else field.default
        assert getattr(FULL, field.name) != made, f"{field.name} has its default"

    scene.add(Step(conversation=FULL, asked=FULL.questions))

    assert scene.load(FULL) == FULL


def a_conversation_is_loaded_with_every_field_it_was_saved_with(scene: Scene) -> None:
    scene.user()
    plain = scene.add(Step(conversation=make.conversation(created_at=FULL.created_at)))

    scene.change(plain, lambda _: Step(conversation=FULL, asked=FULL.questions))
    assert scene.load(FULL) == FULL

    scene.change(plain, lambda _: Step(conversation=plain, withdrawn=(ASKED.id,)))
    assert scene.load(plain) == plain


def a_conversation_comes_back_whatever_its_fields_are(scene: Scene) -> None:
    plain = make.conversation(schedule=Immediate())

    _come_back(
        scene,
        *(
            replace(plain, id=new_conversation_id(), **{name: value})
            for name, values in CHOICES.items()
            for value in values
        ),
    )


def a_state_comes_back_up_to_its_limits(scene: Scene) -> None:
    nested: Any = "deep"
    for _ in range(MAX_JSON_DEPTH - 2):
        nested = [nested]
    numbers = [MAX_INTEGER, -MAX_INTEGER, 0, 0.1, -0.0, 5e-324, 1.7976931348623157e308]
    states = [
        State(),
        State(context={"": {}}, data={"list": [], "nothing": None}),
        State(context=_fill({}), step="é" * MAX_STEP_CHARS, data=_fill({"n": numbers})),
        State(data={"nested": nested, "control": "\x01\u2028"}),
    ]
    for state in states:
        check_state(state)

    _come_back(
        scene,
        *(
            make.conversation(
                id=new_conversation_id(), title="\U0001f680" * MAX_TITLE_CHARS, state=state
            )
            for state in states
        ),
    )


def changes_that_race_are_all_kept(scene: Scene) -> None:
    chat = scene.chat()

    def count(found: Conversation) -> Step:
        return Step(conversation=replace(found, run_count=found.run_count + 1))

    with ThreadPoolExecutor(4) as people:
        for done in [people.submit(scene.change, chat, count) for _ in range(20)]:
            done.result()

    assert scene.load(chat).run_count == 20


def children_and_followers_are_found_by_what_they_belong_to(scene: Scene) -> None:
    parent = scene.chat()
    born = [scene.task(parent_id=parent.id).id for _ in range(3)]
    follower = scene.task(After(parent.id))
    another = ConversationId("c_another")
    scene.task(After(another), parent_id=another)

    children = scene.run(lambda tx: tx.conversations.children(USER, parent.id))
    assert sorted(children) == sorted(born)
    followers = scene.run(lambda tx: tx.conversations.followers(USER, parent.id))
    assert followers == (follower.id,)


def children_that_have_work_or_ask_something_are_open(scene: Scene) -> None:
    parent = scene.chat()
    works, ended, asks = (scene.task(parent_id=parent.id) for _ in range(3))
    scene.task()
    scene.change(ended, lambda found: transitions.cancel(found, now=scene.clock.now))
    scene.change(asks, lambda found: transitions.ask_owner(found, make.question()))
    scene.change(
        asks, lambda found: Step(conversation=replace(found, schedule=None, next_run_at=None))
    )

    found = scene.run(lambda tx: tx.conversations.open_children(USER, parent.id))
    assert {one.id for one in found} == {works.id, asks.id}
    assert {one.id: len(one.questions) for one in found} == {works.id: 0, asks.id: 1}


def _come_back(scene: Scene, *made: Conversation) -> None:
    user = scene.user()

    def add(tx: Tx) -> None:
        for one in made:
            tx.conversations.insert(one)

    scene.run(add)
    found = scene.run(lambda tx: [tx.conversations.load(user, one.id) for one in made])
    for was, is_now in zip(made, found, strict=True):
        assert is_now == was


def _fill(data: dict[str, Any]) -> dict[str, Any]:
    """Add text until there is no room for more."""
    room = MAX_STATE_BYTES - json_size({**data, "text": ""})
    return {**data, "text": "é" * (room // 2)}


def replies_that_began_since_a_message_are_told_from_other_runs(scene: Scene) -> None:
    chat = scene.chat()
    assert scene.run(lambda tx: tx.messages.last_of_user(USER, chat.id)) is None
    runs, since = [], list[datetime]()
    for text in ("One.", "Two."):
        scene.clock.advance(timedelta(seconds=1))
        scene.say(chat, text)
        last = scene.run(lambda tx: tx.messages.last_of_user(USER, chat.id))
        assert last is not None
        assert (last.content, last.conversation_id) == (text, chat.id)
        since.append(last.created_at)
        claim = scene.begin_reply()
        runs.append(claim.run.id)
        scene.finish(claim, "Hello.", served=scene.items(claim))
    scene.task()
    work = scene.begin_work()
    runs.append(work.run.id)

    def find(*of: RunId, after: datetime, owner: UserId = USER) -> set[RunId]:
        return set(scene.run(lambda tx: tx.runs.replies_since(owner, chat.id, of, after)))

    first, second, _ = runs
    assert find(*runs, after=since[0]) == {first, second}
    assert find(*runs, after=since[1]) == {second}
    assert find(first, after=since[0]) == {first}
    assert find(after=since[0]) == set()
    assert find(*runs, after=since[0], owner=STRANGER) == set()
