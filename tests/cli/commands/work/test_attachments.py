"""`say --attach`, and where files of messages are shown."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cases.images import png
from support.programs.cli_server import Running
from support.programs.programs import Ended
from support.requirements import requirement

from backburner.cli.commands.say import Reply
from backburner.core.content.attachment import MAX_ATTACHMENTS
from backburner.core.content.file import digest_of

Call = Callable[..., Ended]
FILE = {"digest": "9f86d081" * 8, "size": 2048, "media_type": "image/png", "name": "a\x1b[2J.png"}


@requirement("Z-attach")
def test_files_are_sent_with_a_message_and_fetched_again(talk: Call, tmp_path: Path) -> None:
    image, text = tmp_path / "my chart.png", tmp_path / "notes.txt"
    image.write_bytes(png())
    text.write_bytes(b"notes")
    digest = digest_of(png())[:12]

    said = talk("say", "--attach", str(image), "--attach", str(text), "help")
    (conversation,) = json.loads("\n".join(talk("conversations", "--json").out))
    shown = talk("conversations", conversation["id"])
    saved = talk("files", "get", digest, str(tmp_path / "copy.png"))
    listed = talk("files")

    assert said.code == 0, said.err
    line = f"[File: my chart.png, image/png, {len(png())} bytes."
    assert any(one.startswith(line) and f"files get {digest}`" in one for one in shown.out)
    assert any(one.startswith("[File: notes.txt, application/octet-stream") for one in shown.out)
    assert saved.code == 0, saved.err
    assert (tmp_path / "copy.png").read_bytes() == png()
    assert conversation["id"][:12] in "\n".join(listed.out)


def test_files_need_no_words_and_a_message_has_one_or_the_other(talk: Call, tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_bytes(b"notes")

    alone = talk("say", "--attach", str(text), "--json", "--no-wait")
    neither = talk("say")

    sent = json.loads("\n".join(alone.out))["message"]
    assert (sent["content"], [file["name"] for file in sent["attachments"]]) == ("", ["notes.txt"])
    assert (neither.code, neither.err[-1]) == (
        2,
        "Pass a text, or a file with --attach. Run `backburner say --help` for usage.",
    )


def test_a_message_is_replaced_by_one_with_files(talk: Call, tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_bytes(b"notes")
    talk("say", "help")

    replaced = talk("say", "-c", "--replace", "--attach", str(text), "--json", "help")

    (file,) = json.loads("\n".join(replaced.out))["message"]["attachments"]
    assert file["digest"] == digest_of(b"notes")


@pytest.mark.parametrize(
    ("given", "code"), [("missing", 2), ("folder", 2), ("many", 2), ("large", 2)]
)
def test_nothing_is_sent_with_a_file_that_cannot_be(
    talk: Call, running: Running, tmp_path: Path, given: str, code: int
) -> None:
    del running
    text = tmp_path / "notes.txt"
    text.write_bytes(b"notes" if given != "large" else bytes(20 * 2**20 + 1))
    path = {"missing": tmp_path / "no", "folder": tmp_path}.get(given, text)
    count = MAX_ATTACHMENTS + 1 if given == "many" else 1

    refused = talk("say", *["--attach", str(path)] * count, "help")

    assert refused.code == code, refused.err
    assert json.loads("\n".join(talk("conversations", "--json").out)) == []
    assert json.loads("\n".join(talk("files", "--json").out)) == []


def test_a_reply_shows_what_was_handed_over(capsys: pytest.CaptureFixture[str]) -> None:
    said: dict[str, Any] = {"role": "assistant", "content": "Here.", "attachments": [FILE]}
    asked = {"role": "user", "content": "Draw.", "attachments": [{**FILE, "name": "mine.png"}]}
    events = iter(
        [
            ("delta", {"text": "Here.", "at": 0}),
            ("done", {"messages": [asked, said], "questions": []}),
        ]
    )

    Reply(echo=True).follow(events)

    printed = capsys.readouterr()
    assert printed.out == "Here.\n"
    assert "mine.png" not in printed.err
    assert printed.err.startswith("[File: a")
    assert "files get 9f86d0819f86`.]\n" in printed.err
    assert "\x1b" not in printed.err
