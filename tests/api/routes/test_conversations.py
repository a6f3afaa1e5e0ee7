"""`/api/conversations`: begin, find, look, change, delete."""

from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
from sqlalchemy import select
from support.cases.large_data import multiply
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End, Say, ScriptedEngine, Spend
from support.requirements import requirement
from support.stage.api_stage import AskAs, Asker
from support.stage.make import NOON, USER
from support.stage.stage import Stage
from support.stage.until import until
from support.statements import watched

from backburner.actions.conversations import MAX_PINNED
from backburner.core.accounts import Role, Scope
from backburner.core.allowance import Allowance, AllowanceScope
from backburner.core.conversation import Conversation, PauseReason, Session
from backburner.core.routing import Routes
from backburner.core.run import RunStatus
from backburner.core.schedule import After, Event, Interval
from backburner.core.transitions import Step
from backburner.store import tables

MINUTE = timedelta(minutes=1)
EVERY_HOUR = Interval(timedelta(hours=1), anchor=NOON)
PATH = "/api/conversations"


@requirement("A-api", "A-fields")
async def test_a_chat_is_begun_with_what_is_said_first(ask: Asker, stage: Stage) -> None:
    born = await ask.do("POST", PATH, {"message": "Watch CI, please."})

    assert await ask.get(f"{PATH}/{born['id']}") == born
    assert (born["user_id"], born["kind"], born["status"]) == (USER, "chat", "active")
    assert born["title"] == "Watch CI, please."
    assert (born["schedule"], born["next_run_at"], born["next_times"]) == (None, None, [])
    nothing: dict[str, Any] = {"context": {}, "step": "", "data": {}, "pending_question": None}
    assert born["state"] == nothing
    assert (born["session"], born["profile"]) == (None, "scripted")
    assert born["created_at"] == born["updated_at"] == "2026-11-16T12:00:00Z"
    await stage.work()
    said = await ask.get(f"{PATH}/{born['id']}/messages")
    assert [one["content"] for one in said["items"]] == ["Hello.", "Watch CI, please."]


@requirement("B-fields")
async def test_a_task_shows_what_becomes_of_it(ask: Asker, stage: Stage, clock: SetClock) -> None:
    await ask.do("PUT", "/api/me", {"zone": "Europe/Berlin"})
    body = {"what": "Look.", "when": "every 30m", "max_runs": 9, "tools": ["look"]}
    born = await ask.do("POST", PATH, {**body, "title": "CI", "run_timeout": 60})
    stage.engine.then(End({"complete": True, "message": "All is green."}))
    await stage.work()
    clock.advance(MINUTE)

    shown = await ask.get(f"{PATH}/{born['id']}")
    assert (shown["title"], shown["kind"], shown["status"]) == ("CI", "task", "background")
    assert shown["schedule"]["every"] == 1800
    assert shown["schedule_in_words"] == "every 30 minutes"
    times = [f"2026-11-16T{at}:00Z" for at in ("12:30", "13:00", "13:30")]
    assert (shown["next_run_at"], shown["next_times"]) == (times[0], times)
    assert shown["next_times_in_words"][0] == "Mon 16 Nov 2026, 13:30 CET"
    assert (shown["run_count"], shown["max_runs"], shown["notify"]) == (1, 9, "on_change")
    assert shown["last_run_at"] == "2026-11-16T12:00:00Z"
    assert shown["last_result_hash"] == sha256(b"all is green.").hexdigest()
    assert shown["created_by"] == "user"
    assert (shown["tools"], shown["run_timeout"], shown["reports_to"]) == (["look"], 60, [])
    assert shown["state"]["context"]["prompt"] == "Look."
    assert (shown["failures"], shown["crashes"], shown["ended_as"]) == (0, 0, None)
    assert shown["task"]["status"] == "active"
    assert (shown["task"]["kind"], shown["task"]["needs_you"]) == ("scheduled", False)
    assert shown["job"] is None


@requirement("B-fields")
async def test_a_task_that_waits_for_events_shows_their_source(ask: Asker, stage: Stage) -> None:
    task = await stage.task(Event("file", {"path": "a"}))

    shown = (await ask.get(f"{PATH}/{task.id}"))["task"]

    assert (shown["kind"], shown["event_source"]) == ("event", "file")
    assert shown["event_config"] == {"path": "a"}


@requirement("B-retry")
async def test_what_repeated_failures_lead_to_is_chosen_for_a_chat_or_a_task(ask: Asker) -> None:
    chosen = {"on_repeated_failure": "pause"}
    chat = await ask.do("POST", PATH, {"message": "Hello.", **chosen})
    usual = await ask.do("POST", PATH, {"message": "Hello."})
    task = await ask.do("POST", PATH, {"what": "Look.", "when": "every 30m"})
    changed = await ask.do("PATCH", f"{PATH}/{usual['id']}", chosen)

    shown = [one["on_repeated_failure"] for one in (chat, usual, task, changed)]
    assert shown == ["pause", "notify", "pause", "pause"]
    kept = await ask.do("PATCH", f"{PATH}/{usual['id']}", {"title": "Other"})
    assert kept["on_repeated_failure"] == "pause"


@requirement("A-fields")
async def test_only_the_session_of_claude_is_shown_as_one_of_claude(
    ask: Asker, stage: Stage
) -> None:
    chat = await stage.chat()

    def remember(engine: str) -> None:
        changed = replace(stage.load(chat), session=Session(engine, "s_1"))
        stage.database.run(lambda tx: tx.conversations.save(Step(conversation=changed)))

    remember("local")
    shown = await ask.get(f"{PATH}/{chat.id}")
    assert (shown["session"], shown["claude_session_id"]) == (
        {"engine": "local", "id": "s_1"},
        None,
    )

    remember("claude")
    ask.api.state.deps = replace(stage.deps, claude=frozenset({"claude"}))
    assert (await ask.get(f"{PATH}/{chat.id}"))["claude_session_id"] == "s_1"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"what": "Look."}, 400),
        ({"when": "every 30m"}, 400),
        ({"what": "Look.", "when": "every 30m", "schedule": {"type": "immediate"}}, 400),
        ({"what": "Look.", "when": "every 30m", "message": "Hello."}, 400),
        ({"what": "Look.", "when": "now and then"}, 400),
        ({"what": "Look.", "schedule": {"type": "never"}}, 400),
        ({"what": " ", "when": "now"}, 400),
        ({"message": ""}, 400),
        ({"message": "x" * 100_001}, 413),
        ({"message": "Hello.", "profile": "nobody's"}, 400),
        ({"message": "Hello.", "surprise": 1}, 422),
        ({"message": 1}, 422),
        ({"title": "x" * 201}, 422),
        ({"what": "Look.", "when": "now", "max_runs": 0}, 422),
        ([], 422),
    ],
)
async def test_what_cannot_be_begun_is_refused_and_nothing_is_kept(
    ask: Asker, body: object, status: int
) -> None:
    answer = await ask("POST", PATH, body)

    assert answer.status_code == status
    assert answer.json()["detail"]
    assert (await ask.get(PATH, archived=False))["items"] == []


@requirement("A-pause", "A-api")
async def test_work_is_paused_resumed_run_stopped_and_put_away(ask: Asker, stage: Stage) -> None:
    task = await stage.task(EVERY_HOUR)
    path = f"{PATH}/{task.id}"

    paused = await ask.do("POST", f"{path}/pause")
    assert (paused["status"], paused["pause_reason"]) == ("active", "user")
    assert (paused["next_run_at"], paused["next_times"]) == (None, [])
    assert paused["task"]["status"] == "paused"
    again = await ask("POST", f"{path}/pause")
    assert (again.status_code, again.json()["detail"]) == (409, "This work is already paused.")

    assert (await ask.do("POST", f"{path}/resume"))["status"] == "background"
    await stage.work()
    before = len(stage.history(task))
    await ask.do("POST", f"{path}/run-now")
    await stage.work()
    assert len(stage.history(task)) == before + 1

    assert (await ask.do("POST", f"{path}/cancel"))["ended_as"] == "cancelled"
    assert (await ask.do("POST", f"{path}/archive"))["status"] == "archived"
    assert (await ask("POST", f"{path}/run-now")).status_code == 409
    assert (await ask.do("POST", f"{path}/reopen"))["status"] == "active"


async def test_its_summary_is_shown_and_deleted(ask: Asker, stage: Stage) -> None:
    stage.engine.tokens = 100_001
    chat = await stage.chat()
    await stage.say(chat, "Never restart a build.")
    rule = stage.messages(chat)[0]
    stage.engine.then(Say("Hello."))
    stage.engine.then(End({"goal": "Find the bug.", "user_messages": [rule.id]}))
    await stage.work()
    path = f"{PATH}/{chat.id}/summary"

    shown = await ask.get(path)
    assert (shown["text"], shown["outside"]) == ("Goal: Find the bug.", False)
    assert shown["messages"] == [{"id": rule.id, "text": rule.content}]
    assert (await ask("DELETE", path)).status_code == 204
    again = await ask("GET", path)
    assert (again.status_code, again.json()["detail"]) == (404, "There is no summary.")


async def test_its_agent_starts_afresh(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    await stage.say(chat, "Hello?")
    await stage.work()

    fresh = await ask.do("POST", f"{PATH}/{chat.id}/fresh")

    assert fresh["claude_session_id"] is None
    assert stage.load(chat).session is None
    assert stage.said(chat)[:2] == ["Hello?", "Hello."]


async def test_it_is_renamed_and_told_of_differently(ask: Asker, stage: Stage) -> None:
    task = await stage.task(EVERY_HOUR)
    path = f"{PATH}/{task.id}"

    changed = await ask.do("PATCH", path, {"title": "  Another   name ", "notify": "always"})

    assert (changed["title"], changed["notify"]) == ("Another name", "always")
    assert (await ask.do("PATCH", path, {}))["title"] == "Another name"
    assert (await ask("PATCH", path, {"title": " "})).status_code == 400
    assert (await ask("PATCH", path, {"status": "archived"})).status_code == 422


@requirement("Z-model-change")
async def test_its_model_is_changed_also_for_one_message(ask: Asker, stage: Stage) -> None:
    routes = Routes(names=("scripted", "other"), chat="scripted")
    other = ScriptedEngine()
    engines = {**stage.deps.engines, "other": other}
    stage.deps = stage.claiming.deps = replace(stage.deps, routes=routes, engines=engines)
    ask.api.state.deps = stage.deps
    born = await ask.do("POST", PATH, {})
    path = f"{PATH}/{born['id']}"
    await ask.do("POST", f"{path}/messages", {"content": "One.", "profile": "other"})
    await stage.work()
    assert (await ask.get(path))["profile"] == "scripted"
    assert len(other.requests) == 1

    assert (await ask.do("PATCH", path, {"profile": "other"}))["profile"] == "other"
    assert (await ask.do("PATCH", path, {"title": "Talk"}))["profile"] == "other"
    assert (await ask.do("PATCH", path, {"profile": None}))["profile"] == "scripted"
    refused = await ask("PATCH", path, {"profile": "clod"})
    assert refused.status_code == 400
    assert "Available: scripted, other." in refused.text


async def test_who_may_only_read_changes_nothing(ask_as: AskAs, stage: Stage) -> None:
    reads, chat = await ask_as(USER, Scope.READ), await stage.chat()

    assert (await reads("DELETE", f"{PATH}/{chat.id}")).status_code == 403
    assert (await reads("POST", PATH, {})).status_code == 403
    assert (await reads.get(f"{PATH}/{chat.id}"))["id"] == chat.id


async def titles(ask: Asker, **wanted: Any) -> list[str]:
    return [one["title"] for one in (await ask.get(PATH, **wanted))["items"]]


@requirement("B-clean-store")
async def test_lists_show_what_is_asked_for(ask: Asker, stage: Stage, clock: SetClock) -> None:
    chat = await stage.chat()
    await stage.say(chat, "Chat")
    clock.advance(MINUTE)
    await stage.task(EVERY_HOUR, title="Task", parent_id=chat.id)
    clock.advance(MINUTE)
    old = await stage.task(EVERY_HOUR, title="Old")
    await ask.do("POST", f"{PATH}/{old.id}/archive")

    assert await titles(ask) == ["Chat"]
    assert await titles(ask, all=True) == ["Task", "Chat"]
    assert await titles(ask, archived=True) == ["Old"]
    assert await titles(ask, status="archived") == ["Old"]
    assert await titles(ask, status="background") == ["Task"]
    assert await titles(ask, kind="chat") == await titles(ask, view="chats") == ["Chat"]
    assert await titles(ask, view="tasks") == ["Task"]
    assert await titles(ask, parent_id=chat.id) == ["Task"]
    assert await titles(ask, view="jobs") == []
    assert (await ask("GET", PATH, params={"status": "gone"})).status_code == 422


async def test_words_are_found_in_titles_and_messages_of_ones_own(
    ask: Asker, mate: Asker, stage: Stage, clock: SetClock
) -> None:
    for words in ("100% Äpfel", "Birnen", "under_score"):
        chat = await stage.chat()
        await stage.say(chat, "Fruit")
        await stage.say(chat, f"I like {words} most.")
        await ask.do("PATCH", f"{PATH}/{chat.id}", {"title": words})
        clock.advance(MINUTE)

    assert await titles(ask, q="BIRNEN") == ["Birnen"]
    assert await titles(ask, q="i LIKE birnen") == ["Birnen"]
    assert await titles(ask, q="100%") == ["100% Äpfel"]
    assert await titles(ask, q="r_s") == ["under_score"]
    assert await titles(ask, q="%") == ["100% Äpfel"]
    assert await titles(ask, q="fruit", limit=2) == ["under_score", "Birnen"]
    assert await titles(ask, q="nowhere") == await titles(mate, q="fruit") == []
    assert await titles(ask, q="  ") == await titles(ask)
    assert (await ask("GET", PATH, params={"q": "a\0"})).status_code == 400
    assert (await ask("GET", PATH, params={"q": "x" * 201})).status_code == 422


async def test_pages_shift_by_nothing_that_comes_in(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    for number in range(5):
        # Two at a time were changed at the same moment.
        clock.advance(MINUTE * (number % 2))
        await stage.task(EVERY_HOUR, title=f"{number}")

    first = await ask.get(PATH, limit=2)
    clock.advance(MINUTE)
    await stage.task(EVERY_HOUR, title="New")
    second = await ask.get(PATH, limit=2, cursor=first["next"])
    third = await ask.get(PATH, limit=2, cursor=second["next"])

    shown = [one["title"] for page in (first, second, third) for one in page["items"]]
    assert sorted(shown) == ["0", "1", "2", "3", "4"]
    assert third["next"] is None


@pytest.mark.parametrize(
    "cursor", ["x", "!", "W10", "bnVsbA", "WyJhIiwgImIiXQ", "WzEsIDJd", "W1tbW1tbW1tb"]
)
async def test_a_cursor_that_was_never_given_out_is_refused(ask_as: AskAs, cursor: str) -> None:
    ask = await ask_as(role=Role.OPERATOR)
    for name in (
        "conversations",
        "questions",
        "notices",
        "memories",
        "tokens",
        "users",
        "invitations",
    ):
        path = f"/api/{name}"
        answer = await ask("GET", path, params={"cursor": cursor})
        assert answer.status_code == 400, path
        assert "Start again" in answer.json()["hint"]


@pytest.mark.parametrize("limit", ["0", "201", "-1", "many"])
async def test_a_page_has_one_to_two_hundred(ask: Asker, limit: str) -> None:
    assert (await ask("GET", PATH, params={"limit": limit})).status_code == 422


async def family(stage: Stage) -> tuple[Conversation, Conversation, Conversation]:
    parent = await stage.chat()
    child = await stage.task(EVERY_HOUR, parent_id=parent.id)
    grandchild = await stage.task(EVERY_HOUR, parent_id=child.id)
    return parent, child, grandchild


async def test_what_is_deleted_is_gone_with_all_that_it_handed_out(
    ask: Asker, stage: Stage
) -> None:
    parent, child, grandchild = await family(stage)
    follower = await stage.task(After(child.id))
    stays = await stage.task(EVERY_HOUR)

    assert (await ask("DELETE", f"{PATH}/{parent.id}")).status_code == 204

    for gone in (parent, child, grandchild):
        assert (await ask("GET", f"{PATH}/{gone.id}")).status_code == 404
    assert stage.load(follower).pause_reason is PauseReason.USER
    assert stage.load(stays).status == "background"
    assert (await ask("DELETE", f"{PATH}/{parent.id}")).status_code == 404


async def test_what_was_done_and_spent_outlives_what_it_was_for(ask: Asker, stage: Stage) -> None:
    stage.engine.then(Spend(70), Call("look"), Call("slow"))
    stage.tools.let_go.set()
    task = await stage.task()
    await stage.work()
    assert stage.history(task)[0].status is RunStatus.SUCCESS

    await ask.do("DELETE", f"{PATH}/{task.id}?now=true")

    kept = select(tables.receipts.c.tool, tables.receipts.c.result)
    rows = stage.database.run(lambda tx: tx.connection.execute(kept).all())
    assert [tuple(row) for row in rows] == [("slow", "slow is done.")]
    assert (await ask.get("/api/spend"))["total"]["tokens"] == 70


async def test_a_run_that_is_under_way_ends_when_its_conversation_is_deleted(
    ask: Asker, stage: Stage
) -> None:
    stage.engine.then(Call("slow"))
    task = await stage.task()
    await stage.take_up()
    await stage.tools.started["slow"].wait()

    await ask.do("DELETE", f"{PATH}/{task.id}")
    await stage.renew()
    await stage.idle()

    assert (await ask("GET", f"{PATH}/{task.id}")).status_code == 404
    assert stage.notices() == []


async def test_a_run_that_goes_on_after_its_conversation_was_deleted_leaves_nothing(
    ask: Asker, stage: Stage
) -> None:
    stage.engine.then(Call("slow"), Spend(5), Call("look"))
    task = await stage.task()
    await stage.take_up()
    await stage.tools.started["slow"].wait()
    (under_way,) = stage._tasks

    await ask.do("DELETE", f"{PATH}/{task.id}")
    stage.tools.let_go.set()
    await stage.idle()

    assert under_way.exception() is None
    assert stage.tools.count("look") == 0
    assert (await ask.get(PATH))["items"] == []


async def test_jobs_and_tasks_of_a_conversation_stand_under_it(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    for title in ("First", "Second"):
        clock.advance(MINUTE)
        await stage.task(EVERY_HOUR, title=title, parent_id=chat.id)
    alone = await stage.task(EVERY_HOUR, title="Alone")

    listed = {one["id"]: one for one in (await ask.get(PATH))["items"]}

    assert set(listed) == {chat.id, alone.id}
    assert listed[alone.id]["children"] == {"count": 0, "open": []}
    children = listed[chat.id]["children"]
    assert children["count"] == 2
    shown = [(one["title"], one["kind"], one["running"]) for one in children["open"]]
    assert shown == [("Second", "task", None), ("First", "task", None)]
    assert (await ask.get(f"{PATH}/{chat.id}"))["children"] == children


async def test_a_page_takes_as_many_statements_for_many_conversations_as_for_one(
    ask: Asker, stage: Stage
) -> None:
    async def statements() -> int:
        with watched(stage.database) as seen:
            await ask.get(PATH)
        return len(seen)

    for _ in range(2):
        stage.engine.then(Call("slow"))
    chat = await stage.chat()
    await stage.task(EVERY_HOUR, parent_id=chat.id)
    await stage.task(EVERY_HOUR)
    await stage.take_up()
    await until(lambda: len(stage.tools.calls) == 2)
    # The first request also notes the use of the token.
    await ask.get(PATH)
    few = await statements()
    for _ in range(5):
        other = await stage.chat()
        await stage.task(EVERY_HOUR, parent_id=other.id)
        await stage.task(EVERY_HOUR)
    many = await statements()
    stage.tools.let_go.set()
    await stage.idle()

    assert many == few


async def test_what_was_seen_is_marked_and_other_clients_are_told(ask: Asker, stage: Stage) -> None:
    born = await ask.do("POST", PATH, {"message": "Watch CI, please."})
    assert (born["unread"], born["unread_count"]) == (False, 0)
    assert born["last_message"]["excerpt"] == "Watch CI, please."
    await stage.work()
    (listed,) = (await ask.get(PATH))["items"]
    assert (listed["unread"], listed["unread_count"]) == (True, 1)
    said = (await ask.get(f"{PATH}/{born['id']}/messages"))["items"][0]
    assert listed["last_message"] == {
        "id": said["id"],
        "role": "assistant",
        "excerpt": "Hello.",
        "created_at": said["created_at"],
    }
    number = stage.database.run(lambda tx: tx.events.latest(USER))

    seen = await ask.do("POST", f"{PATH}/{born['id']}/seen", {"up_to": said["id"]})

    assert (seen["unread"], seen["unread_count"]) == (False, 0)
    assert seen["updated_at"] == listed["updated_at"]
    (told,) = stage.database.run(lambda tx: tx.events.after(USER, number, limit=9))
    assert (told.kind, told.conversation) == ("conversation", born["id"])
    # Nothing changes any more.
    await ask.do("POST", f"{PATH}/{born['id']}/seen")
    assert stage.database.run(lambda tx: tx.events.latest(USER)) == told.number


async def test_nothing_is_seen_up_to_a_message_from_elsewhere(ask: Asker, stage: Stage) -> None:
    here, other = [await ask.do("POST", PATH, {"message": "Hello."}) for _ in range(2)]
    await stage.work()
    foreign = (await ask.get(f"{PATH}/{other['id']}/messages"))["items"][0]

    answer = await ask("POST", f"{PATH}/{here['id']}/seen", {"up_to": foreign["id"]})

    assert answer.status_code == 404
    assert (await ask.get(f"{PATH}/{here['id']}"))["unread"] is True


async def test_pinned_conversations_are_a_section_of_the_list(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    chats = [await stage.chat() for _ in range(3)]
    child = await stage.task(EVERY_HOUR, parent_id=chats[0].id)
    clock.advance(MINUTE)
    for one in (chats[0].id, child.id):
        pinned = await ask.do("PATCH", f"{PATH}/{one}", {"pinned": True})
        assert pinned["pinned_at"] == "2026-11-16T12:01:00Z"
        assert pinned["updated_at"] == "2026-11-16T12:00:00Z"

    def ids(listed: Any) -> set[str]:
        return {one["id"] for one in listed["items"]}

    assert ids(await ask.get(PATH, pinned=True)) == {chats[0].id, child.id}
    # The child stands under its parent.
    assert ids(await ask.get(PATH, pinned=False)) == {chats[1].id, chats[2].id}
    assert ids(await ask.get(PATH)) == {chat.id for chat in chats}
    unpinned = await ask.do("PATCH", f"{PATH}/{chats[0].id}", {"pinned": False, "title": "New"})
    assert (unpinned["pinned_at"], unpinned["title"]) == (None, "New")
    assert unpinned["updated_at"] == "2026-11-16T12:01:00Z"


async def test_so_many_conversations_can_be_pinned_and_a_refusal_changes_nothing(
    ask: Asker, stage: Stage
) -> None:
    chat = await stage.chat()
    await ask.do("PATCH", f"{PATH}/{chat.id}", {"pinned": True})
    stage.database.run(
        lambda tx: multiply(tx.connection, tables.conversations, USER, MAX_PINNED - 1)
    )
    other = await stage.chat()

    refused = await ask("PATCH", f"{PATH}/{other.id}", {"pinned": True, "title": "New"})

    assert refused.status_code == 409
    assert "Unpin one" in refused.json()["hint"]
    assert stage.load(other).title == other.title
    # One that is pinned stays so, however often it is asked for.
    assert (await ask("PATCH", f"{PATH}/{chat.id}", {"pinned": True})).status_code == 200


async def test_the_list_is_filtered_by_states_as_people_think_of_them(
    ask: Asker, stage: Stage
) -> None:
    task = await stage.task(EVERY_HOUR)
    chat, archived = await stage.chat(), await stage.chat()
    await ask.do("POST", f"{PATH}/{archived.id}/archive")
    await stage.task(EVERY_HOUR, parent_id=chat.id)

    async def listed(**filters: Any) -> list[tuple[str, list[str]]]:
        return [(one["id"], one["states"]) for one in (await ask.get(PATH, **filters))["items"]]

    assert await listed(state="archived") == [(archived.id, ["archived"])]
    # Children are found as well.
    assert len(await listed(state="scheduled")) == 2
    assert await listed(state="working") == []
    await ask.do("POST", f"{PATH}/{task.id}/pause")
    assert await listed(state="paused") == [(task.id, ["paused"])]
    assert await listed(state="paused", pinned=True) == []
    assert (await ask("GET", PATH, params={"state": "odd"})).status_code == 422


async def test_unread_conversations_are_listed_apart(ask: Asker, stage: Stage) -> None:
    chat, other = await stage.chat(), await stage.chat()
    child = await stage.task(EVERY_HOUR, parent_id=chat.id)
    await stage.work()

    def ids(listed: Any) -> set[str]:
        return {one["id"] for one in listed["items"]}

    # The child is found as well, which has reported to its parent.
    assert ids(await ask.get(PATH, unread=True)) == {chat.id, child.id}
    assert ids(await ask.get(PATH, unread=False)) == {other.id}
    await ask.do("POST", f"{PATH}/{chat.id}/seen")
    assert ids(await ask.get(PATH, unread=True)) == {child.id}
    assert (await ask("GET", PATH, params={"unread": "odd"})).status_code == 422


async def test_a_list_shows_what_was_spent_and_what_may_be(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    child = await stage.task(EVERY_HOUR, parent_id=chat.id)
    plain = await ask.get(f"{PATH}/{chat.id}")
    assert (plain["spent"], plain["allowance"]) == ({"micros": 0, "tokens": 0}, None)
    limit = Allowance(AllowanceScope.CONVERSATION, tokens=50)
    stage.database.run(lambda tx: tx.spending.set_allowance(USER, limit, chat.id))
    stage.engine.then(Spend(40))
    await stage.work()

    (listed,) = (await ask.get(PATH))["items"]

    # The task counts to the conversation that it belongs to.
    assert listed["spent"]["tokens"] == 40
    assert listed["allowance"] == {
        "scope": "conversation",
        "micros": None,
        "tokens": 50,
        "spent": listed["spent"],
        "is_used_up": False,
        "is_own": True,
        "at_most": None,
    }
    shown = await ask.get(f"{PATH}/{child.id}")
    assert (shown["spent"], shown["allowance"]) == (None, None)
    ask.api.state.deps = replace(
        stage.deps, allowances=(Allowance(AllowanceScope.CONVERSATION, tokens=9),)
    )
    other = await stage.chat()
    assert (await ask.get(f"{PATH}/{other.id}"))["allowance"]["tokens"] == 9


async def test_a_search_shows_where_its_words_were_found(ask: Asker) -> None:
    born = await ask.do("POST", PATH, {"message": "Watch the Café, please.", "title": "Paris"})
    await ask.do("POST", PATH, {"message": "Watch CI."})
    await ask.do("POST", f"{PATH}/{born['id']}/archive")
    assert (await ask.get(PATH, q="cafe"))["items"] == []

    (found,) = (await ask.get(PATH, q="paris CAFE", archived=True))["items"]

    title, said = found["hits"]
    assert (title["found_in"], title["message_id"]) == ("title", None)
    assert title["parts"] == [{"text": "Paris", "is_hit": True}]
    assert (said["found_in"], said["role"]) == ("message", "user")
    assert (said["message_id"], said["created_at"]) == (
        found["last_message"]["id"],
        found["last_message"]["created_at"],
    )
    assert [(part["text"], part["is_hit"]) for part in said["parts"]] == [
        ("Watch the ", False),
        ("Café", True),
        (", please.", False),
    ]
    assert all(one["hits"] == [] for one in (await ask.get(PATH))["items"])


async def test_a_deleted_conversation_is_restored_or_removed_at_once(
    ask: Asker, stage: Stage
) -> None:
    chat, other = await stage.chat(), await stage.chat()
    await ask.do("DELETE", f"{PATH}/{chat.id}")
    assert (await ask("DELETE", f"{PATH}/{other.id}", params={"now": True})).status_code == 204

    restored = await ask.do("POST", f"{PATH}/{chat.id}/restore")

    assert (restored["id"], restored["status"]) == (chat.id, "active")
    assert (await ask("POST", f"{PATH}/{other.id}/restore")).status_code == 404
    assert (await ask("POST", f"{PATH}/{chat.id}/restore")).status_code == 404
    assert [one["id"] for one in (await ask.get(PATH))["items"]] == [chat.id]


async def test_the_child_of_a_deleted_conversation_is_not_restored_alone(
    ask: Asker, stage: Stage
) -> None:
    chat = await stage.chat()
    task = await stage.task(EVERY_HOUR, parent_id=chat.id)
    await ask.do("DELETE", f"{PATH}/{chat.id}")

    refused = await ask("POST", f"{PATH}/{task.id}/restore")

    assert refused.status_code == 409
    assert refused.json()["hint"] == "Restore that one."
