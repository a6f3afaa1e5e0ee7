"""`backburner say`: the reply as it arrives."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.programs.cli_server import Running
from support.programs.programs import Ended, Start
from support.servers.losing import losing

from backburner.cli.commands.say import Reply
from backburner.core.errors import BackburnerError

Call = Callable[..., Ended]


def test_a_fresh_installation_replies_at_once(
    call: Call, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path))
    running = start("up", "--port", "0")
    running.wait_until_ready()
    said = call("say", "remind me in 1 hour to stretch")
    (conversation,) = json.loads("\n".join(call("conversations", "--json").out))
    more = call("say", "--in", conversation["id"][:8], "--json", "what are you working on?")
    away = call("away", "--seen")

    assert said.code == 0, said.err
    assert said.out[0].startswith("All right.")
    assert said.err == [f"[in {conversation['id'][:12]}]"]
    assert conversation["status"] == "background"
    assert "stretch" in json.loads("\n".join(more.out))["messages"][-1]["content"]
    assert away.code == 0
    assert away.out[0].startswith("Since ")


@pytest.mark.parametrize("text", ["", "  ", "a" * 200_001])
def test_a_message_that_is_refused_creates_no_conversation(talk: Call, text: str) -> None:
    before = talk("conversations", "--json").out
    refused = talk("say", text)

    assert refused.code == 2
    assert "The message" in refused.err[0]
    assert talk("conversations", "--json").out == before


def test_a_message_whose_stream_was_lost_is_not_sent_twice(
    talk: Call, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    with losing(running.address) as between:
        monkeypatch.setenv("BACKBURNER_URL", between.address)
        said = talk("say", "Only once.")

    assert said.code == 0
    assert said.out == ["Connection lost. The message was received."]


def test_a_reply_is_printed_as_it_arrives_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    reply = Reply(echo=True)
    message = {"role": "assistant", "content": "Hello you."}
    end = reply.follow(
        iter(
            [
                ("message", {}),
                ("delta", {"at": 0, "text": "Hello "}),
                ("delta", {"at": 6, "text": "you."}),
                ("done", {"messages": [message]}),
            ]
        )
    )

    assert capsys.readouterr().out == "Hello you.\n"
    assert end["messages"] == [message]


def test_a_restarted_reply_begins_on_a_new_line(capsys: pytest.CaptureFixture[str]) -> None:
    Reply(echo=True).follow(
        iter(
            [
                ("delta", {"at": 0, "text": "Hel"}),
                ("delta", {"at": 0, "text": "Good day."}),
                ("done", {"messages": [{"role": "assistant", "content": "Good day."}]}),
            ]
        )
    )

    assert capsys.readouterr().out == "Hel\nGood day.\n"


def test_a_stream_that_is_cut_short_is_an_error() -> None:
    with pytest.raises(BackburnerError, match="connection was lost"):
        Reply(echo=False).follow(iter([("message", {})]))
