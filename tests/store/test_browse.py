"""Lists walk an index that begins with the owner, and pages of a search go on where they ended."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import CompoundSelect, Select, insert, select
from support.cases.query_plans import explain, plan
from support.stage import make
from support.stage.make import MATE, NOON, USER
from support.stage.scene import Scene
from support.statements import scans, watched

from backburner.core import transitions
from backburner.core.content.search import ExcerptPart
from backburner.core.conversation import Status
from backburner.core.ids import new_call_id
from backburner.core.run import RunStatus
from backburner.core.schedule import Interval
from backburner.core.tool_policy import Tool, ToolCall
from backburner.ports import (
    ConversationFilter,
    ConversationPage,
    Hit,
    NewMemory,
    PageKey,
    StoredResponse,
    View,
)
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.dialect import is_sqlite
from backburner.store.queries import activity, browse, search, timeline
from backburner.store.queries import conversations as listed
from backburner.store.records import memories
from backburner.store.tx import Tx

MINUTE = timedelta(minutes=1)
AFTER: PageKey = (NOON, "c")
#: With what each may be found by: an index, or the primary key of its table.
LISTS: dict[str, tuple[Select[Any] | CompoundSelect[Any], str]] = {
    "conversations": (
        listed.select_page(ConversationFilter(), None),
        "ix_conversations_listed",
    ),
    "conversations, next": (
        listed.select_page(ConversationFilter(archived=False), AFTER),
        "ix_conversations_listed",
    ),
    "conversations by status": (
        listed.select_page(ConversationFilter(status=Status.BACKGROUND, view=View.TASKS), AFTER),
        "ix_conversations_listed",
    ),
    "jobs": (
        listed.select_page(ConversationFilter(view=View.JOBS), None),
        "ix_conversations_jobs",
    ),
    "jobs of a batch, next": (
        listed.select_page(ConversationFilter(view=View.JOBS, batch="b"), AFTER),
        "ix_conversations_jobs",
    ),
    "top level": (
        listed.select_page(ConversationFilter(top_level=True, archived=False), AFTER),
        "ix_conversations_listed",
    ),
    "pinned": (
        listed.select_page(ConversationFilter(pinned=True, archived=False), AFTER),
        "ix_conversations_pinned",
    ),
    "not pinned": (
        listed.select_page(ConversationFilter(pinned=False, archived=False, top_level=True), AFTER),
        "ix_conversations_listed",
    ),
    "unread": (listed.select_page(ConversationFilter(unread=True), AFTER), "ix_conversations_jobs"),
    "how many run": (activity.count_running, "uq_runs_running"),
    "running": (activity.select_runs(RunStatus.RUNNING, after=True), "uq_runs_running"),
    "queued": (activity.select_runs(RunStatus.QUEUED, after=True), "ix_runs_queued_of_user"),
    "failed": (activity.select_runs(RunStatus.FAILURE, after=True), "ix_runs_of_user"),
    "calls": (activity.select_calls_after, "ix_tool_calls_of_run"),
    "messages": (browse.messages_page, "ix_messages_of_conversation"),
    "messages, next": (browse.messages_after, "ix_messages_of_conversation"),
    "questions": (browse.questions_page, "ix_questions_open"),
    "questions, next": (browse.questions_after, "ix_questions_open"),
    "questions of a conversation": (timeline.questions_page, "ix_questions_of_conversation"),
    "questions of a conversation, next": (
        timeline.questions_after,
        "ix_questions_of_conversation",
    ),
    "runs": (browse.runs_page, "ix_runs_of_conversation"),
    "runs, next": (browse.runs_after, "ix_runs_of_conversation"),
    "notices": (browse.notices_page, "sqlite_autoindex_notices_1"),
    "notices, next": (browse.notices_after, "sqlite_autoindex_notices_1"),
    "unseen notices": (browse.unseen_numbers, "ix_notices_unseen"),
    "memories": (memories.select_page, "sqlite_autoindex_memories_1"),
    "memories, next": (memories.select_page_after, "sqlite_autoindex_memories_1"),
}
#: What may be put in order after it was found: there is little of it.
FEW = {*("questions", "questions, next", "running", "queued", "calls")}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_walks_an_index_that_begins_with_the_owner(sqlite: Database, name: str) -> None:
    statement, index = LISTS[name]

    steps = plan(sqlite, statement)

    assert any(f"INDEX {index} (user_id=?" in step for step in steps), steps
    assert not any(step.startswith("SCAN") for step in steps), steps
    if name not in FEW:
        # Rows of the same moment may be sorted, never all of them.
        assert not any("B-TREE FOR ORDER BY" in step for step in steps), steps


def test_what_a_list_shows_is_found_by_indexes(sqlite: Database) -> None:
    scene = Scene(sqlite)
    chats = [scene.chat().id for _ in range(2)]
    with watched(sqlite) as seen:
        scene.run(lambda tx: tx.browse.list_facts(USER, chats))
    ((statement, values),) = seen

    steps = explain(sqlite, statement, values)
    # The one that is counted is what was found.
    assert not any("SCAN" in step for step in steps if step != "SCAN anon_1"), steps
    assert not any("B-TREE" in step for step in steps), steps
    unseen = "ix_messages_of_conversation (user_id=? AND conversation_id=? AND number>?)"
    assert any(unseen in step for step in steps), steps


@pytest.mark.parametrize("page", [browse.notices_page, browse.notices_after])
def test_deliveries_of_the_notices_on_a_page_are_read_once(
    sqlite: Database, page: Select[Any]
) -> None:
    steps = plan(sqlite, browse.with_deliveries(page))

    assert "MATERIALIZE part" in steps
    (read,) = [step for step in steps if " deliveries " in step]
    index = "ix_deliveries_of_conversation (user_id=? AND conversation_id=?)"
    assert read == f"SEARCH deliveries USING INDEX {index}"


def test_activities_children_and_facts_scan_no_table(sqlite: Database) -> None:
    scene = Scene(sqlite)
    chat = scene.chat()
    scene.task(parent_id=chat.id)
    scene.begin_work()

    with watched(sqlite) as seen:
        scene.run(lambda tx: tx.browse.children(USER, [chat.id], limit=9))
        scene.run(lambda tx: tx.browse.work_facts(USER, chat.id, limit=9))

    # Three for the children, of which one runs and may say what it does, and one for all facts.
    reads = [(statement, values) for statement, values in seen if "SELECT" in statement]
    assert len(reads) == 4
    for statement, values in reads:
        assert not scans(sqlite, statement, values), statement


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


def look(
    scene: Scene, wanted: ConversationFilter, after: PageKey | None = None, **more: int
) -> ConversationPage:
    return scene.run(
        lambda tx: tx.browse.conversations(USER, wanted, after, **{"limit": 9, **more})
    )


def titled(scene: Scene, title: str) -> None:
    scene.change(scene.task(), lambda found: transitions.rename(found, title))


def found_titles(found: ConversationPage) -> list[str]:
    return [seen.conversation.title for seen in found.conversations]


def test_a_search_looks_at_so_many_at_a_time_and_goes_on(scene: Scene) -> None:
    for number in range(7):
        scene.clock.advance(MINUTE)
        titled(scene, f"Task {number}" if number % 3 else "Other")

    wanted, shown, after, pages = ConversationFilter(search="TASK"), list[str](), None, 0
    while after is not None or not pages:
        page = look(scene, wanted, after, limit=2, scan_limit=3)
        shown += found_titles(page)
        after, pages = page.next_key, pages + 1

    assert shown == [f"Task {number}" for number in (5, 4, 2, 1)]
    assert pages >= 3


def test_words_are_looked_for_in_the_newest_messages(scene: Scene) -> None:
    chat = scene.chat()
    scene.say(chat, "Needle")
    assert found_titles(look(scene, ConversationFilter(search="needle")))
    many = search.MAX_MESSAGES
    rows = [
        {
            "id": f"m_{number}",
            "number": 1000 + number,
            "user_id": USER,
            "conversation_id": chat.id,
            "role": "user",
            "source": "chat",
            "content": "Hay",
            "outside": False,
            "created_at": NOON,
        }
        for number in range(many)
    ]
    scene.change(chat, lambda found: transitions.rename(found, "Chat"))
    scene.run(lambda tx: tx.connection.execute(insert(tables.messages), rows))

    assert found_titles(look(scene, ConversationFilter(search="hay"))) == ["Chat"]
    assert found_titles(look(scene, ConversationFilter(search="needle"))) == []


def test_words_are_found_whatever_their_case_accents_and_order(scene: Scene) -> None:
    chat = scene.chat()
    scene.change(chat, lambda found: transitions.rename(found, "Größe"))
    scene.say(chat, "Das CAFÉ am Fluß, cafe\u0301 und ﬁlm. 100%_ is\\so. " + "x" * 20_000 + " end")

    def finds(words: str) -> bool:
        return found_titles(look(scene, ConversationFilter(search=words))) == ["Größe"]

    for words in (
        *("cafe", "Café", "fluss das", "CAFE FLUSS", "GRÖSSE", "film", "grosse cafe", "100%_"),
        *('"am fluß"', "is\\so", " das  am "),
    ):
        assert finds(words), words
    for words in ("cafes", "cafe nothing", '"fluss am"', "100__", "end", "100%s"):
        assert not finds(words), words


def test_a_search_says_where_it_found_the_words(scene: Scene) -> None:
    chat, other = scene.chat(), scene.chat()
    scene.change(chat, lambda found: transitions.rename(found, "Deploy the page"))
    for number in range(5):
        scene.say(chat, f"Message {number} about **Berlin**, and more.")
    scene.say(other, "Nothing of it.")

    (row,) = look(scene, ConversationFilter(search="deploy berlin")).conversations

    title, *said = row.hits
    assert title == Hit((ExcerptPart("Deploy", is_hit=True), ExcerptPart(" the page")))
    assert [hit.parts[0].text for hit in said] == [f"Message {n} about " for n in (4, 3, 2)]
    assert said[0].parts[1:] == (ExcerptPart("Berlin", is_hit=True), ExcerptPart(", and more."))
    newest = scene.run(lambda tx: tx.browse.messages(USER, chat.id, None, limit=1))[0]
    assert (said[0].message_id, said[0].role) == (newest.id, newest.role)
    assert said[0].created_at == newest.created_at
    # Where all words are in the title, messages have at least one of them.
    (row,) = look(scene, ConversationFilter(search="deploy")).conversations
    assert len(row.hits) == 1


def test_a_search_takes_few_statements_and_scans_nothing(scene: Scene) -> None:
    for _ in range(3):
        scene.say(scene.chat(), "Needle")

    with watched(scene.database) as seen:
        look(scene, ConversationFilter(search="needle hay needle"))
        assert len(look(scene, ConversationFilter(search="needle")).conversations) == 3

    reads = [(statement, values) for statement, values in seen if "like" in statement.lower()]
    assert len(reads) == 3
    if is_sqlite(scene.database.engine):
        for statement, values in reads:
            assert not scans(scene.database, statement, values), statement
            steps = explain(scene.database, statement, values)
            found = [step for step in steps if step.startswith("SEARCH messages")]
            index = "ix_messages_of_conversation (user_id=? AND conversation_id=?"
            assert all(f"USING INDEX {index}" in step for step in found), steps
            assert found


def test_pages_go_on_where_several_were_changed_at_the_same_moment(scene: Scene) -> None:
    for number in range(5):
        titled(scene, f"{number}")
    scene.task(user=MATE)

    first = look(scene, ConversationFilter(), limit=2)
    scene.clock.advance(MINUTE)
    titled(scene, "New")
    second = look(scene, ConversationFilter(), first.next_key, limit=2)
    third = look(scene, ConversationFilter(), second.next_key, limit=2)

    shown = [title for page in (first, second, third) for title in found_titles(page)]
    assert (sorted(shown), third.next_key) == ([f"{number}" for number in range(5)], None)


def remember(scene: Scene, key: str) -> None:
    scene.run(lambda tx: tx.memories.put(USER, NewMemory(key=key, text="a")))


def test_pages_of_everything_go_on_where_they_ended(scene: Scene) -> None:
    chat = scene.chat()
    for number in range(3):
        scene.say(chat, f"{number}")
        remember(scene, f"{number}")

    def said(after: PageKey | None) -> list[tuple[str, str]]:
        found = scene.run(lambda tx: tx.browse.messages(USER, chat.id, after, limit=2))
        return [(one.id, one.content) for one in found]

    (_, newest), (last, second) = said(None)
    assert (newest, second) == ("2", "1")
    assert [content for _, content in said((last,))] == ["0"]
    remembered = scene.run(lambda tx: tx.browse.memories(USER, ("0",), limit=2))
    assert [one.key for one in remembered] == ["1", "2"]


def test_runs_and_questions_and_notices_have_pages_on_both_databases(scene: Scene) -> None:
    task = scene.task(Interval(MINUTE, anchor=NOON))
    for _ in range(3):
        scene.finish(scene.begin_work())
        scene.clock.advance(MINUTE)
    runs = scene.run(lambda tx: tx.browse.runs(USER, task.id, None, limit=9))
    first = runs[0]
    mark = (first.started_at, first.epoch, first.id)
    later = scene.run(lambda tx: tx.browse.runs(USER, task.id, mark, limit=9))
    assert (len(runs), list(later)) == (3, list(runs[1:]))

    told = scene.run(lambda tx: tx.browse.notices(USER, None, unseen=True, limit=9))
    after = (told[0].id,)
    rest = scene.run(lambda tx: tx.browse.notices(USER, after, unseen=True, limit=9))
    assert list(rest) == list(told[1:])

    scene.change(task, lambda found: transitions.ask_owner(found, make.question()))
    (asked,) = scene.run(lambda tx: tx.browse.questions(USER, None, limit=9))
    last = (asked.question.asked_at, asked.question.id)
    assert not scene.run(lambda tx: tx.browse.questions(USER, last, limit=9))


def test_what_there_is_to_do_is_counted_on_both_databases(scene: Scene) -> None:
    scene.task()
    scene.say(scene.chat(), "Hello?")
    scene.clock.advance(2 * MINUTE)

    found = scene.run(lambda tx: tx.browse.gauges(now=scene.clock.now))
    assert (found.claimable, found.oldest_wait, found.users_waiting) == (2, 2 * MINUTE, 1)

    scene.begin_work()
    found = scene.run(lambda tx: tx.browse.gauges(now=scene.clock.now))
    assert (found.claimable, found.runs) == (1, {"running": 1, "queued": 0})


def test_a_key_is_taken_once_until_it_is_let_go(scene: Scene) -> None:
    scene.user()

    def begin(request: str) -> StoredResponse | None:
        return scene.run(lambda tx: tx.stored_responses.reserve(USER, "k", request, now=NOON))

    assert begin("one") is None
    assert begin("two") == StoredResponse("one", None, None, NOON)
    scene.run(lambda tx: tx.stored_responses.release(USER, "k"))
    assert begin("two") is None
    scene.run(lambda tx: tx.stored_responses.complete(USER, "k", 200, "{}"))
    scene.run(lambda tx: tx.stored_responses.release(USER, "k"))
    assert begin("two") == StoredResponse("two", 200, "{}", NOON)
    assert scene.run(lambda tx: tx.stored_responses.prune(before=NOON, limit=9)) == 0
    assert scene.run(lambda tx: tx.stored_responses.prune(before=NOON + MINUTE, limit=9)) == 1


def test_what_is_deleted_leaves_its_receipts(scene: Scene) -> None:
    scene.task()
    claim = scene.begin_work()
    call = ToolCall(Tool(server="s", name="t", definition="d"), {"to": "Ann"})

    def make_calls(tx: Tx) -> None:
        for read_only in (True, False):
            which = new_call_id()
            tx.tool_calls.begin(claim.turn, which, call, read_only=read_only)

    scene.run(make_calls)

    scene.run(lambda tx: tx.conversations.delete(USER, claim.conversation.id))

    (kept,) = scene.run(lambda tx: tx.connection.execute(select(tables.receipts)).all())
    assert (kept.tool, kept.state, kept.user_id) == ("t", "unknown", USER)
