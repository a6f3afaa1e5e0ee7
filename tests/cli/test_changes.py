"""Commands that change conversations, tasks, schedules, models and one's own settings."""

import io
import sys

import pytest
from sqlalchemy import update
from support.programs.cli_server import Ask, Call, Running, wait_for
from support.requirements import requirement

from backburner.core.accounts import Role
from backburner.store import tables


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())


@pytest.fixture
def chat(ask: Ask) -> str:
    """Give the id of a chat."""
    said = ask("say", "Hello.", "--no-wait")
    return str(said["conversation_id"])


def make_operator(running: Running) -> None:
    change = update(tables.users).where(tables.users.c.id == running.user)
    running.transact(lambda tx: tx.connection.execute(change.values(role=Role.OPERATOR.value)))


@requirement("Z-cli-whole")
def test_a_conversation_is_renamed_archived_reopened_and_deleted(
    talk: Call, ask: Ask, chat: str
) -> None:
    assert talk("conversations", "rename", chat, "Tea").out == ["Renamed: Tea."]
    assert ask("conversations", "notify", "Tea", "never")["notify"] == "never"
    assert talk("conversations", "archive", "Tea").out == ["Archived: Tea."]
    assert ask("conversations", "list", "--archived")[0]["id"] == chat
    assert talk("conversations", "reopen", "Tea").out == ["Reopened: Tea."]

    refused = talk("conversations", "delete", "Tea")
    assert (refused.code, "Add --yes." in refused.err[0]) == (2, True)
    assert ask("conversations", "Tea")["id"] == chat
    assert talk("conversations", "delete", "Tea", "--yes").out[0].startswith("Deleted.")
    assert talk("conversations", chat).code == 3


@requirement("Z-cli-whole")
def test_a_schedule_is_previewed_set_changed_and_cleared(talk: Call, ask: Ask, chat: str) -> None:
    assert ask("schedule", "preview", "every 2h")["in_words"] == "every 2 hours"
    made = ask("schedule", "set", chat, "every day at 9", "--what", "remind me to look")
    assert (made["schedule"]["cron_expression"], made["status"]) == ("0 9 * * *", "background")
    changed = talk("schedule", "set", chat, "every day at 10")
    assert ", next run at " in changed.out[0]
    assert ask("conversations", chat)["schedule"]["cron_expression"] == "0 10 * * *"
    skips = ask("schedule", "set", chat, "--missed", "skip")["schedule"]
    assert (skips["cron_expression"], skips["catch_up"]) == ("0 10 * * *", "skip")
    assert "Nothing to change" in talk("schedule", "set", chat).err[0]
    assert talk("schedule", "clear", chat).out == ["It has no schedule any more."]
    assert ask("conversations", chat)["schedule"] is None
    refused = talk("schedule", "set", chat, "when pigs fly")
    assert refused.code == 2


@requirement("Z-cli-whole")
def test_a_task_is_edited_and_deleted(talk: Call, ask: Ask) -> None:
    # At no time that is soon: the demo agent ends work that it does not understand.
    ask("tasks", "add", "tea", "Make tea.", "--when", "0 8 1 1 *", "--max-runs", "3")
    edit = ("tasks", "edit", "tea", "--when", "0 9 1 1 *", "--notify", "always")
    changed = ask(*edit, "--max-runs", "none", "--tool", "read_file", "--name", "coffee")
    assert changed["schedule"]["cron_expression"] == "0 9 1 1 *"
    assert (changed["notify"], changed["max_runs"]) == ("always", None)
    assert (changed["tools"], changed["prompt"]) == (["read_file"], "Make tea.")
    assert ask("tasks", "edit", "coffee", "--all-tools")["tools"] is None
    assert ask("tasks", "edit", "coffee", "--max-runs", "5")["max_runs"] == 5
    assert ask("tasks", "edit", "coffee", "--missed", "skip")["schedule"]["catch_up"] == "skip"
    lasting = ask("tasks", "edit", "coffee", "--on-repeated-failure", "notify")
    assert (lasting["on_repeated_failure"], lasting["max_runs"]) == ("notify", 5)

    assert "Nothing to change" in talk("tasks", "edit", "coffee").err[0]
    assert talk("tasks", "edit", "coffee", "--max-runs", "few").code == 2
    assert "Available: demo." in talk("tasks", "edit", "coffee", "--profile", "clod").err[0]
    assert talk("tasks", "delete", "coffee").code == 2
    assert talk("tasks", "delete", "coffee", "--yes").out == ["Deleted."]
    assert ask("tasks") == []


@requirement("Z-cli-whole", "Z-model-change")
def test_models_are_listed_and_changed_for_a_conversation_or_one_message(
    talk: Call, ask: Ask, chat: str
) -> None:
    assert ask("models") == [
        {"profile": "demo", "chats": True, "background": True, "own_key": False}
    ]
    assert talk("models").out[1].split() == ["demo", "chats,", "background", "work"]
    assert talk("models", "use", chat, "demo").out == ["Hello. uses demo from now on."]
    assert ask("models", "use", chat, "--default")["profile"] == "demo"
    assert talk("models", "use", chat).code == 2
    unknown = talk("models", "use", chat, "clod")
    assert (unknown.code, "Available: demo." in unknown.err[0]) == (2, True)
    assert talk("say", "Hello?", "--in", chat, "--model", "demo").code == 0
    assert "Available: demo." in talk("say", "Hello?", "--in", chat, "--model", "clod").err[0]


def test_the_last_message_is_replaced(talk: Call, ask: Ask, chat: str) -> None:
    assert talk("say", "Good morning.", "--replace", "--in", chat).code == 0
    said = [
        message["content"]
        for message in ask("conversations", chat)["messages"]
        if message["role"] == "user"
    ]
    assert said == ["Good morning."]
    assert talk("say", "Hello.", "--replace").code == 2


@requirement("Z-cli-whole", "Z-zone")
def test_ones_settings_are_shown_and_changed(talk: Call, ask: Ask) -> None:
    assert "UTC (not set)" in "\n".join(talk("me").out)
    shown = talk("me", "--zone", "Europe/Berlin", "--allowance", "day=2 USD").out
    assert "Europe/Berlin (set by you)" in "\n".join(shown)
    assert "per day           2.00 USD" in shown
    assert ask("me")["zone_source"] == "user"
    assert talk("me", "--zone", "Mars/Olympus").code == 2
    assert talk("me", "--allowance", "week=1 USD").code == 2
    restored = ask("me", "--allowance", "day=default", "--allowance", "run=none")
    limits = {one["scope"]: one["micros"] for one in restored["allowances"]}
    assert limits["day"] == 10_000_000
    assert limits.get("run") is None


@requirement("Z-cli-whole")
def test_spend_is_shown_in_all_and_of_a_conversation(talk: Call, ask: Ask, chat: str) -> None:
    assert ask("spend")["conversation"] is None
    assert ask("spend", chat)["conversation"] == {"micros": 0, "tokens": 0}
    shown = talk("spend", chat).out
    assert any(line.startswith("today ") for line in shown)
    assert any(line.startswith("per day ") for line in shown)


@requirement("Z-cli-whole")
def test_a_question_is_snoozed(talk: Call, ask: Ask) -> None:
    said = ask("say", "--no-wait", "every 2 seconds ask me whether to go on")
    found = wait_for(lambda: ask("questions"))
    assert talk("snooze", found[0]["id"], "1h").out == ["Snoozed for 1h."]
    assert talk("snooze", found[0]["id"], "later").code == 2
    talk("cancel", said["conversation_id"])


@requirement("Z-cli-whole")
def test_a_memory_is_shown_and_grants_of_a_conversation_are_listed(
    talk: Call, ask: Ask, chat: str
) -> None:
    ask("memories", "set", "tea", "With milk.")
    assert talk("memories", "show", "tea").out == ["With milk."]
    assert talk("memories", "show", "coffee").code == 3
    assert ask("grants", "list", "--in", chat) == []


@requirement("Z-cli-whole", "Z-everything-off")
def test_an_operator_pauses_and_resumes_everyone(talk: Call, ask: Ask, running: Running) -> None:
    assert talk("pause", "--everyone", "--yes").code == 1
    make_operator(running)
    assert talk("pause", "--everyone").code == 2
    try:
        paused = talk("pause", "--everyone", "--yes")
        assert paused.out == ["Paused: the background work of all users."]
        assert ask("me")["all_paused"]
    finally:
        resumed = talk("resume", "--everyone")
    assert resumed.out == ["Resumed: the background work of all users."]
    assert not ask("me")["all_paused"]
    assert talk("pause", "--everyone", "--everything").code == 2


@requirement("Z-cli-whole")
def test_an_operator_edits_an_account_and_reloads_models(
    talk: Call, ask: Ask, running: Running
) -> None:
    make_operator(running)
    assert ask("user", "edit", running.user, "--name", "Bea")["name"] == "Bea"
    assert talk("user", "edit", running.user).code == 2
    assert ask("models", "reload") == ask("models")


@requirement("Z-cli-whole")
def test_sessions_are_listed_and_all_are_ended(talk: Call, ask: Ask) -> None:
    assert ask("sessions") == []
    assert talk("sessions", "end", "nobodys").code == 3
    assert talk("sessions", "end").code == 2
    assert talk("sessions", "end", "--everywhere").code == 2
    assert talk("sessions", "end", "--everywhere", "--yes").code == 0
    assert talk("me").code == 5


def test_a_password_is_not_read_without_a_terminal(talk: Call) -> None:
    assert "terminal" in talk("user", "password", "--login", "ann", "--yes").err[0]
