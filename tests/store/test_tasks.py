"""Tasks are counted, found and listed by rows as the core derives them, and never by a scan."""

from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from sqlalchemy import Select, insert
from support.cases.query_plans import plan
from support.stage import make
from support.stage.make import MATE, NOON, USER
from support.stage.scene import Scene

from backburner.core import transitions
from backburner.core.allowance import Amount, Cost
from backburner.core.conversation import Conversation, EndedAs, Kind, PauseReason, Status
from backburner.core.ids import ConversationId, QuestionId, new_conversation_id
from backburner.core.question import NO, Purpose
from backburner.core.run import Turn
from backburner.core.schedule import Cron, Interval
from backburner.core.transitions import Brief
from backburner.core.work.proposal import RejectedProposal
from backburner.core.work.views import TaskStatus, counts_as_active, is_listed_as_task, task_status
from backburner.ports import ConversationFilter, View
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.queries import tasks
from backburner.store.tx import Tx

HOUR = timedelta(hours=1)
DAILY = Cron("0 9 * * *", "UTC")
LOOKS: dict[str, tuple[Select[Any], str]] = {
    "active": (tasks.select_active, "ix_conversations_at_work"),
    "open": (tasks.select_open, "ix_conversations_at_work"),
    "titled": (tasks.select_by_title, "ix_conversations_titled"),
    "beginning": (tasks.select_by_id_prefix, "sqlite_autoindex_conversations_1"),
    "proposed": (tasks.count_proposals, "ix_conversations_parent_id"),
    "dismissed": (tasks.select_dismissed, "ix_conversations_dismissed"),
    "costs": (tasks.select_costs, "ix_runs_of_conversation"),
    "costs under": (tasks.select_costs_of_profile, "ix_runs_of_user"),
}


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_at_tasks_walks_an_index_that_begins_with_the_owner(
    sqlite: Database, name: str
) -> None:
    statement, index = LOOKS[name]

    steps = plan(sqlite, statement)

    assert any(f"INDEX {index} (user_id=?" in step for step in steps), steps
    # What was gathered before may be gone through once more, never a table.
    assert not any(step.startswith("SCAN") and "anon" not in step for step in steps), steps


def every_way_to_stand() -> list[Conversation]:
    """Make a conversation of every kind in every state that one can get into."""
    ends = [None, EndedAs.COMPLETED, EndedAs.ERROR, EndedAs.CANCELLED]
    asked = make.question(purpose=Purpose.QUESTION)
    facts = product(Kind, Status, ends, [None, *PauseReason], [None, DAILY], [asked, None])
    made = [
        make.conversation(
            id=new_conversation_id(),
            kind=kind,
            status=status,
            ended_as=ended_as,
            pause_reason=pause_reason,
            schedule=schedule,
            questions=(asked or make.question(purpose=Purpose.PROPOSAL),)
            if status is Status.WAITING_INPUT
            else (),
        )
        for kind, status, ended_as, pause_reason, schedule, asked in facts
        if asked is None or status is Status.WAITING_INPUT
    ]
    dismissed = make.conversation(
        id=new_conversation_id(), kind=Kind.TASK, status=Status.ARCHIVED, ended_as=EndedAs.DISMISSED
    )
    return [*made, dismissed]


def put(scene: Scene, made: list[Conversation]) -> None:
    scene.user()

    def write(tx: Tx) -> None:
        for one in made:
            tx.conversations.insert(one)
            own = [
                make.question(id=QuestionId(f"q_{one.id}"), purpose=asked.purpose)
                for asked in one.questions
            ]
            tx.questions.put(USER, one.id, own)

    scene.run(write)


def test_every_conversation_is_listed_under_the_status_it_has_as_a_task(scene: Scene) -> None:
    made = every_way_to_stand()
    put(scene, made)

    def listed(**wanted: Any) -> set[ConversationId]:
        page = scene.run(
            lambda tx: tx.browse.conversations(
                USER, ConversationFilter(view=View.TASKS, **wanted), None, limit=5_000
            )
        )
        return {seen.conversation.id for seen in page.conversations}

    for status in TaskStatus:
        expected = {one.id for one in made if is_listed_as_task(one) and task_status(one) is status}
        assert expected
        assert listed(task=status) == expected, status
    assert listed() == {one.id for one in made if is_listed_as_task(one)}


def test_those_that_run_or_will_go_on_by_themselves_count_as_active(scene: Scene) -> None:
    made = every_way_to_stand()
    put(scene, made)

    active = scene.run(lambda tx: tx.tasks.active(USER))

    assert {which for which, _ in active} == {one.id for one in made if counts_as_active(one)}
    assert scene.run(lambda tx: tx.tasks.active(MATE)) == []


def test_a_task_is_found_by_its_title_or_the_beginning_of_its_id(scene: Scene) -> None:
    task, other = named(scene, "Watch CI"), named(scene, "Read mail")
    named(scene, "Watch CI", user=MATE)
    scene.change(task, lambda found: transitions.cancel(found, now=NOON))

    def called(name: str) -> list[ConversationId]:
        return [
            one.id for one in scene.run(lambda tx: tx.tasks.by_title_or_id(USER, name, limit=9))
        ]

    assert called("Watch CI") == [task.id]
    assert called(other.id) == called(other.id[:12]) == called(other.id[2:12]) == [other.id]
    assert called("watch") == called("c_") == called("'") == []
    assert set(called("c_0")) <= {task.id, other.id}


def named(scene: Scene, title: str, **more: Any) -> Conversation:
    return scene.change(scene.task(**more), lambda found: transitions.rename(found, title))


def propose(scene: Scene, title: str, parent: ConversationId | None = None) -> Conversation:
    brief = Brief(title=title, prompt=f"Do {title}.", schedule=DAILY, parent_id=parent)
    which, now = new_conversation_id(), scene.clock.now
    return scene.add(transitions.propose(which, scene.user(), brief, why="", now=now))


def dismiss(scene: Scene, found: Conversation) -> None:
    asked, now = found.questions[0].id, scene.clock.now
    scene.change(found, lambda one: transitions.answer(one, asked, NO, now=now))


def test_what_was_dismissed_is_remembered_with_its_time(scene: Scene) -> None:
    for title in ("Old", "New"):
        dismiss(scene, propose(scene, title))
        scene.clock.advance(HOUR)
    propose(scene, "Open")

    rejected = scene.run(lambda tx: tx.tasks.rejected_proposals(USER, since=NOON))

    assert rejected == [RejectedProposal("New", "Do New.", NOON + HOUR)]
    assert scene.run(lambda tx: tx.tasks.rejected_proposals(MATE, since=NOON)) == []


def test_proposals_under_a_conversation_are_counted_whatever_became_of_them(scene: Scene) -> None:
    chat = scene.chat()
    propose(scene, "Before", chat.id)
    scene.clock.advance(HOUR)
    since = scene.clock.now
    dismiss(scene, propose(scene, "Dismissed", chat.id))
    propose(scene, "Open", chat.id)
    propose(scene, "Elsewhere")
    scene.task(parent_id=chat.id)

    assert scene.run(lambda tx: tx.tasks.count_proposed(USER, chat.id, since=since)) == 2
    assert scene.run(lambda tx: tx.tasks.count_proposed(MATE, chat.id, since=since)) == 0


def pay(scene: Scene, turn: Turn, cost: Cost) -> None:
    scene.run(
        lambda tx: tx.spending.add(turn, turn.conversation_id, "model", cost, counts_to=["user"])
    )


def test_each_run_has_its_cost_and_one_that_asked_no_model_cost_nothing(scene: Scene) -> None:
    task = scene.task(Interval(HOUR, anchor=NOON))
    costs = [(10, True), (20, True), (5, False)]
    for number, (micros, priced) in enumerate(costs):
        claim = scene.begin_work()
        cost = Cost(Amount(micros, number), priced=priced)
        for _ in range(2):
            pay(scene, claim.turn, cost)
        scene.finish(claim)
        scene.clock.advance(HOUR)
    scene.finish(scene.begin_work())
    row = {
        "user_id": USER,
        "number": 99,
        "conversation_id": task.id,
        "root_id": task.id,
        "run_id": "r_other",
    }
    more = {"model": "m", "micros": 99, "tokens": 9, "priced": True, "spent_at": NOON}
    scene.run(lambda tx: tx.connection.execute(insert(tables.spend), row | more))

    found = scene.run(lambda tx: tx.tasks.recent_costs(USER, task.id, limit=9))

    assert sorted((cost.amount.micros, cost.amount.tokens, cost.priced) for cost in found) == [
        (0, 0, True),
        (10, 4, False),
        (20, 0, True),
        (40, 2, True),
    ]
    assert len(scene.run(lambda tx: tx.tasks.recent_costs(USER, task.id, limit=2))) == 2
    under = scene.run(
        lambda tx: tx.tasks.recent_costs_by_profile(USER, "scripted", since=NOON, limit=9)
    )
    assert under == []
