"""The commands that talk to a server, with a real one: `backburner up` with the demo agent."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.people.a_token import TOKEN
from support.programs.cli_server import Call, Running, ask, serving, talk, wait_for
from support.servers.losing import losing

__all__ = ["ask", "talk"]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Start a server for all tests here; each begins conversations of its own."""
    with serving(tmp_path_factory.mktemp("data")) as running:
        yield running


def say(ask: Callable[..., Any], text: str) -> str:
    return str(ask("say", "--no-wait", text)["conversation_id"])


def test_a_reminder_becomes_a_notice(ask: Callable[..., Any], talk: Call) -> None:
    which = say(ask, "remind me in 3 seconds to stretch")
    told = wait_for(lambda: [one for one in ask("notices") if one["conversation_id"] == which])
    listed = talk("notices")

    assert "stretch" in told[0]["text"]
    assert listed.out[0].split() == ["WHEN", "KIND", "CONVERSATION", "TEXT"]
    assert any("stretch" in line and line.startswith("new") for line in listed.out)


def test_a_question_is_asked_answered_and_the_work_stopped(
    ask: Callable[..., Any], talk: Call
) -> None:
    which = say(ask, "every 3 seconds ask me whether to go on")

    def asked() -> Any:
        return [one for one in ask("questions") if one["conversation_id"] == which]

    (first,) = wait_for(asked)
    listed = talk("questions")
    answered = talk("answer", first["id"][:12], "yes")
    (second,) = wait_for(lambda: [one for one in asked() if one["id"] != first["id"]])
    late = talk("answer", first["id"], "no")
    stopped = talk("cancel", which[:12])
    again = talk("cancel", which)

    assert any(first["id"][:10] in line for line in listed.out)
    assert (answered.code, answered.out) == (0, ["Answered."])
    assert second["id"] != first["id"]
    assert late.code in (3, 4)
    assert stopped.code == 0
    assert stopped.out[0].startswith("Stopped for good: ")
    assert again.code == 4
    assert asked() == []


def test_work_is_paused_resumed_and_done_at_once(ask: Callable[..., Any], talk: Call) -> None:
    which = say(ask, "remind me every day at 9 to water the flowers")
    wait_for(lambda: ask("conversations", which)["schedule"])
    paused = talk("pause", which)
    listed = talk("conversations")
    resumed = talk("resume", which)
    ran = talk("run-now", which)
    done = wait_for(lambda: [one for one in ask("runs", which) if one["kind"] == "background"])
    shown = talk("runs", which, done[0]["id"][:12])

    assert paused.out[0].startswith("Paused: ")
    assert any("paused (user)" in line for line in listed.out)
    assert "next at" in resumed.out[0]
    assert ran.code == 0
    assert any(line.startswith("id") for line in shown.out)
    assert talk("cancel", which).code == 0


def test_everything_is_paused_with_one_switch(ask: Callable[..., Any], talk: Call) -> None:
    paused = talk("pause", "--everything")
    status = talk("status")
    resumed = talk("resume", "--everything")

    assert paused.out == ["All background work stands still."]
    assert any(line.startswith("paused") for line in status.out)
    assert resumed.out == ["All background work goes on."]
    assert ask("status")["user"]["paused"] is False
    assert talk("pause").code == 2


def test_a_conversation_is_shown_with_what_was_said(ask: Callable[..., Any], talk: Call) -> None:
    which = say(ask, "hello there")
    wait_for(lambda: len(ask("conversations", which)["messages"]) > 1)
    shown = talk("conversations", which)

    assert shown.out[0].split() == ["id", which]
    assert "hello there" in shown.out
    assert ask("conversations", "--search", "hello there")[0]["id"] == which


def test_status_tells_how_things_stand(talk: Call, running: Running) -> None:
    ended = talk("status")

    assert ended.code == 0
    assert running.address in ended.out[0]
    assert "ready" in ended.out[0]
    assert any(line.startswith("questions") for line in ended.out)


def test_any_beginning_of_an_id_will_do_if_only_one_begins_so(
    ask: Callable[..., Any], talk: Call
) -> None:
    which, other = say(ask, "first of two"), say(ask, "second of two")
    by_letters = ask("conversations", which[2:14])
    ambiguous, unknown, empty = (talk("conversations", one) for one in ("c_", "zzzzzzzz", "_"))

    assert by_letters["id"] == which
    assert ambiguous.code == 2
    assert which in ambiguous.err[0] or other in ambiguous.err[0] or "ids begin" in ambiguous.err[0]
    assert (unknown.code, empty.code) == (3, 2)


def test_an_id_that_is_nobodys_is_not_found(talk: Call) -> None:
    ended = talk("pause", "c_0123456789abcdefghjkmnpqrs")

    assert ended.code == 3
    assert len(ended.err) == 1


def test_errors_say_what_is_wrong_and_what_to_do(ask: Callable[..., Any], talk: Call) -> None:
    which = say(ask, "just a chat")
    ended = talk("resume", which)

    assert ended.code == 4
    assert ended.err == ["There is no background work to resume. Give it a schedule."]


def test_everything_of_ones_own_is_written_to_a_file_once(talk: Call, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    first, second = talk("export", str(file)), talk("export", str(file))

    assert first.code == 0
    assert json.loads(file.read_text())["profile"]["name"] == "Ann"
    assert file.stat().st_mode & 0o077 == 0
    assert second.code == 4
    assert [path.name for path in tmp_path.iterdir()] == ["mine.json"]


def test_who_is_not_signed_in_is_told_so(
    talk: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BACKBURNER_TOKEN", "bb_wrong")
    wrong = talk("status")
    monkeypatch.delenv("BACKBURNER_TOKEN")
    none = talk("status")
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    right = talk("status", "--token-file", str(tmp_path / "token"))

    assert (wrong.code, none.code, right.code) == (5, 5, 0)


def test_the_server_of_a_data_folder_is_found_with_what_it_left_there(
    call: Call, running: Running, tmp_path: Path
) -> None:
    client = tmp_path / "client.toml"
    client.write_text(f'address = "{running.address}"\ntoken = "{TOKEN}"\n')
    client.chmod(0o644)
    open_to_all = call("status", "--data", str(tmp_path))
    client.chmod(0o600)
    found = call("status", "--data", str(tmp_path))
    client.write_text("token = 1")
    broken = call("status", "--data", str(tmp_path))

    assert open_to_all.code == 2
    assert "chmod 600" in open_to_all.err[0]
    assert found.code == 0
    assert broken.code == 2


def test_what_may_be_done_without_asking_is_listed(talk: Call, ask: Callable[..., Any]) -> None:
    listed = talk("grants", "list")
    assert (listed.code, listed.out) == (0, ["Nothing: every call is asked about."])
    assert ask("grants", "list") == []

    missing = talk("grants", "widen", "g_0", "git")
    assert (missing.code, missing.err) == (3, ["There is no grant whose id begins with g_0."])


def test_what_is_sent_again_because_the_answer_was_lost_is_done_once(
    talk: Call, ask: Callable[..., Any], running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    with losing(running.address) as between:
        monkeypatch.setenv("BACKBURNER_URL", between.address)
        said = talk("say", "--no-wait", "Only", "once.")
        assert (said.code, len(between.lost)) == (0, 2)
        keys = between.keys
        assert (keys[0], keys[2]) == (keys[1], keys[3])
        assert len(set(keys)) == 2
    monkeypatch.setenv("BACKBURNER_URL", running.address)
    which = said.err[0].removeprefix("[in ").removesuffix("]")

    shown = ask("conversations", which)
    assert [one["content"] for one in shown["messages"] if one["role"] == "user"] == ["Only once."]
    assert [one["id"] for one in ask("conversations")].count(shown["id"]) == 1


def test_a_reply_whose_stream_was_lost_is_not_asked_for_twice(
    talk: Call, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    with losing(running.address) as between:
        monkeypatch.setenv("BACKBURNER_URL", between.address)
        said = talk("say", "Only once.")

    assert said.code == 0
    assert "has arrived" in said.out[0]


def test_a_secret_is_not_asked_for_twice(
    talk: Call, ask: Callable[..., Any], running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    with losing(running.address) as between:
        monkeypatch.setenv("BACKBURNER_URL", between.address)
        lost = talk("token", "create", "--name", "lost")
    monkeypatch.setenv("BACKBURNER_URL", running.address)

    assert (lost.code, lost.out) == (6, [])
    assert [one["name"] for one in ask("token", "list")].count("lost") == 1
