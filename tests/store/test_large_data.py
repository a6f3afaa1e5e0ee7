"""A user with very much: lists walk indexes, and nothing takes more statements or memory for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import Table, func, select, text
from support.cases.large_data import multiply
from support.stage import make
from support.stage.make import MATE, NOON, USER
from support.stage.scene import Scene
from support.statements import scans, watched

from backburner.core import transitions
from backburner.core.allowance import Allowance, AllowanceScope, Amount, Cost
from backburner.core.conversation import Conversation, Destination, Status
from backburner.core.ids import GrantId, MessageId, NoticeId, RunId, UserId, new_call_id
from backburner.core.schedule import Interval
from backburner.core.tool_policy import Grant, Tool, ToolCall
from backburner.core.transitions import Step
from backburner.ports import ConversationFilter, EventKind, NewMemory, View
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.dialect import is_sqlite, number_from
from backburner.store.tx import Tx

MESSAGES, NOTICES, OTHERS, EVENTS = 10_000, 100_000, 2_000, 20_000
PAGE = 50
#: Of these another user has many.
MULTIPLIED = (
    *("conversations", "runs", "questions", "grants", "memories", "tool_calls", "deliveries"),
)


@dataclass(frozen=True, slots=True)
class Home:
    """What a user has, of which there is very much."""

    chat: Conversation
    task: Conversation
    run: RunId
    said: MessageId
    told: NoticeId


ALLOWANCE = Allowance(AllowanceScope.CONVERSATION, tokens=9)


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


def settle_in(scene: Scene, user: UserId) -> Home:
    """Give a user one of everything that is listed."""
    chat = scene.say(scene.chat(user))
    places = (Destination("mail", "a@b"),)
    task = scene.task(Interval(timedelta(hours=1), anchor=NOON), user=user, reports_to=places)
    claim = scene.begin_work()
    call = ToolCall(Tool(server="s", name="t", definition="d"), {})
    grant = Grant(id=GrantId(f"g_{user}"), server="s", tool="t", definition="d")

    def add(tx: Tx) -> None:
        which = new_call_id()
        tx.tool_calls.begin(claim.turn, which, call, read_only=True)
        tx.memories.put(user, NewMemory(key="key", text="text"))
        tx.spending.set_allowance(user, ALLOWANCE, task.id)
        cost = Cost(Amount(1, 1), priced=True)
        tx.spending.add(claim.turn, task.id, "m", cost, counts_to=[f"conversation:{task.id}"])

    scene.run(add)
    scene.finish(claim)
    scene.change(task, lambda found: Step(conversation=found, grants=(grant,)))
    asked = make.question(id=f"q_{user}")
    task = scene.change(task, lambda found: transitions.ask_owner(found, asked))
    said, told = (_first(scene, table, user) for table in (tables.messages, tables.notices))
    return Home(chat, task, claim.run.id, MessageId(said), NoticeId(told))


def _first(scene: Scene, table: Table, user: UserId) -> str:
    asked = select(table.c.id).where(table.c.user_id == user).order_by(table.c.number).limit(1)
    return scene.run(lambda tx: str(tx.connection.execute(asked).scalar_one()))


def crowd(scene: Scene) -> Home:
    """Give one user very much, and another some of everything."""
    home = settle_in(scene, USER)
    settle_in(scene, MATE)
    for user in (USER, MATE):
        scene.database.run(partial(_change, user))

    def fill(tx: Tx) -> None:
        in_chat = {"conversation_id": f"'{home.chat.id}'"}
        multiply(tx.connection, tables.messages, USER, MESSAGES, **in_chat)
        multiply(tx.connection, tables.notices, USER, NOTICES, **in_chat, seen_at="t.created_at")
        for name in ("events", "inbox", *MULTIPLIED):
            multiply(tx.connection, tables.metadata.tables[name], MATE, OTHERS)
        multiply(tx.connection, tables.spend, MATE, OTHERS, run_id="t.run_id || n")
        multiply(tx.connection, tables.totals, MATE, OTHERS, what="t.what || n")
        multiply(tx.connection, tables.allowances, MATE, OTHERS, root_id="t.root_id || n")

    scene.run(fill)
    if not is_sqlite(scene.database.engine):
        scene.run(lambda tx: tx.connection.execute(text("ANALYZE")))
    return home


def _change(user: UserId, tx: Tx) -> None:
    tx.changed(user, None, EventKind.USER)


Look = Callable[[Tx, Home], object]


def export(part: str) -> Look:
    return lambda tx, _: tx.personal_data.page(USER, part, None, limit=PAGE)


LOOKS: dict[str, Look] = {
    "conversations": lambda tx, _: tx.browse.conversations(
        USER, ConversationFilter(), None, limit=PAGE
    ),
    "conversations, next": lambda tx, home: tx.browse.conversations(
        USER, ConversationFilter(archived=False), (NOON, home.chat.id), limit=PAGE
    ),
    "tasks": lambda tx, _: tx.browse.conversations(
        USER, ConversationFilter(status=Status.BACKGROUND, view=View.TASKS), None, limit=PAGE
    ),
    "jobs": lambda tx, _: tx.browse.conversations(
        USER, ConversationFilter(view=View.JOBS), None, limit=PAGE
    ),
    "unread ones": lambda tx, _: tx.browse.conversations(
        USER, ConversationFilter(unread=True), None, limit=PAGE
    ),
    "a few of them": lambda tx, home: tx.browse.conversations(
        USER, ConversationFilter(archived=False, among=[home.task.id]), None, limit=PAGE
    ),
    "a search": lambda tx, _: tx.browse.conversations(
        USER, ConversationFilter(search="nothing has this"), None, limit=PAGE
    ),
    "a search that finds something": lambda tx, home: tx.browse.hits(
        USER, ["hello"], {home.chat.id: ""}
    ),
    "questions of a conversation": lambda tx, home: tx.browse.asked(
        USER, home.task.id, None, limit=PAGE
    ),
    "runs by their ids": lambda tx, home: tx.browse.runs_with_ids(USER, home.task.id, [home.run]),
    "what runs did": lambda tx, home: tx.browse.run_details(USER, [home.run]),
    "messages": lambda tx, home: tx.browse.messages(USER, home.chat.id, None, limit=PAGE),
    "messages, next": lambda tx, home: tx.browse.messages(
        USER, home.chat.id, (f"{home.said}5000",), limit=PAGE
    ),
    "recent messages": lambda tx, home: tx.messages.recent(USER, home.chat.id, limit=PAGE),
    "notices": lambda tx, _: tx.browse.notices(USER, None, unseen=False, limit=PAGE),
    "notices, next": lambda tx, home: tx.browse.notices(
        USER, (f"{home.told}50000",), unseen=False, limit=PAGE
    ),
    "unseen notices": lambda tx, _: tx.browse.notices(USER, None, unseen=True, limit=PAGE),
    "unseen notices, next": lambda tx, home: tx.browse.notices(
        USER, (f"{home.told}50000",), unseen=True, limit=PAGE
    ),
    "notices since": lambda tx, _: tx.away.recent_notices(USER, NOON, limit=PAGE),
    "questions": lambda tx, _: tx.browse.questions(USER, None, limit=PAGE),
    "questions, next": lambda tx, _: tx.browse.questions(USER, (NOON, "q"), limit=PAGE),
    "runs": lambda tx, home: tx.browse.runs(USER, home.task.id, None, limit=PAGE),
    "runs, next": lambda tx, home: tx.browse.runs(
        USER, home.task.id, (NOON, 1, home.run), limit=PAGE
    ),
    "calls": lambda tx, home: tx.browse.calls(USER, home.run),
    "grants": lambda tx, home: tx.browse.grants(USER, home.task.id),
    "all grants": lambda tx, _: tx.browse.all_grants(USER, None, limit=PAGE),
    "memories": lambda tx, _: tx.browse.memories(USER, None, limit=PAGE),
    "memories, next": lambda tx, _: tx.browse.memories(USER, ("k",), limit=PAGE),
    "changes": lambda tx, _: tx.events.after(USER, 0, limit=PAGE),
    **{f"export of {part}": export(part) for part in ("messages", "notices", *MULTIPLIED)},
}


def test_lists_of_very_much_walk_indexes_and_pages_have_all_of_it_once(scene: Scene) -> None:
    home = crowd(scene)
    for name, look in LOOKS.items():
        with watched(scene.database) as seen:
            scene.database.run(partial(_look, look, home))
        assert 1 <= len(seen) <= 3, (name, seen)
        for statement, values in seen:
            assert scans(scene.database, statement, values) == [], (name, statement)

    total = _count(scene, tables.notices)
    assert total > NOTICES
    with watched(scene.database) as seen:
        sizes = scene.database.run(_read_pages)
    assert sum(sizes) == total
    assert max(sizes) == 5000
    # One more asks for the time.
    assert len(seen) <= len(sizes) + 1

    with watched(scene.database) as seen:
        scene.database.run(lambda tx: tx.conversations.delete(USER, home.chat.id))
    assert len(seen) < 10
    assert _count(scene, tables.messages) < 10
    assert _count(scene, tables.notices) < 10


def _look(look: Look, home: Home, tx: Tx) -> object:
    return look(tx, home)


def _read_pages(tx: Tx) -> Sequence[int]:
    """Read all notices in pages, and give the size of each."""
    after, sizes = None, list[int]()
    while after is not None or not sizes:
        page = tx.personal_data.page(USER, "notices", after, limit=5000)
        after = page.next_key
        sizes.append(len({row["id"] for row in page.rows}))
    return sizes


def _count(scene: Scene, table: Table) -> int:
    asked = select(func.count()).where(table.c.user_id == USER)
    return scene.run(lambda tx: int(tx.connection.execute(asked).scalar_one()))


def test_old_events_are_pruned_some_at_a_time(scene: Scene) -> None:
    scene.user(USER)
    scene.database.run(partial(_change, USER))

    def fill(tx: Tx) -> None:
        multiply(tx.connection, tables.events, USER, EVENTS)
        number_from(tx.connection, tables.events, 1000 + EVENTS)

    scene.run(fill)
    later = scene.database.run(lambda tx: tx.now) + timedelta(days=1)
    assert scene.database.run(lambda tx: tx.events.prune(before=later, limit=2000)) == 2000
    with watched(scene.database) as seen:
        while scene.database.run(lambda tx: tx.events.prune(before=later, limit=2000)):
            pass
    assert len(seen) <= EVENTS / 2000 + 2
    assert _count(scene, tables.events) == 1
