"""`backburner status` and `away`."""

from collections.abc import Callable
from typing import Any

from support.programs.cli_server import Call, Running, wait_for
from support.requirements import requirement


def test_status_shows_the_server_the_user_and_counts(talk: Call, running: Running) -> None:
    ended = talk("status")

    assert ended.code == 0
    fields = {line[:12].strip(): line[12:] for line in ended.out}
    assert fields["server"].endswith(f"at {running.address}, ready")
    assert fields["user"] == "Ann (member)"
    assert fields["questions"].endswith(" open")
    assert fields["notices"].endswith(" new")


def test_status_shows_what_is_next(talk: Call, ask: Callable[..., Any]) -> None:
    ask("tasks", "add", "later", "Do it.", "--when", "in 2h")
    ask("tasks", "add", "soon", "Do it.", "--when", "in 1h")

    lines = talk("status").out

    coming = lines[lines.index("Next") + 1 :]
    assert coming[0].split() == ["ID", "TITLE", "NEXT", "RUN"]
    assert [line.split()[1] for line in coming[1:]] == ["soon", "later"]
    assert "Running now" not in lines


@requirement("Z-away")
def test_away_names_the_work_of_each_question_and_notice(
    talk: Call, ask: Callable[..., Any]
) -> None:
    asks = ask("say", "--no-wait", "every 2 seconds ask me whether to go on")
    tells = ask("say", "--no-wait", "remind me in 1 second to stretch")
    wait_for(lambda: ask("questions"))
    wait_for(lambda: [one for one in ask("notices") if one["kind"] == "result"])
    titles = [ask("conversations", said["conversation_id"])["title"] for said in (asks, tells)]
    lines = talk("away").out
    talk("cancel", asks["conversation_id"])

    questions, notices = lines.index("Open questions"), lines.index("Notices")
    assert lines[questions + 1].split() == ["ID", "CONVERSATION", "QUESTION"]
    assert f" {titles[0]} " in lines[questions + 2]
    assert lines[notices + 1].split() == ["TIME", "KIND", "CONVERSATION", "TEXT"]
    assert any(f" {titles[1]} " in line for line in lines[notices + 2 :])
