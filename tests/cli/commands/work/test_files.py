"""`backburner files`, with a real server."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import insert
from support.people.files import put_file
from support.programs.cli_server import Running
from support.programs.programs import Ended, Start
from support.programs.terminals import terminal
from support.stage.make import NOON

from backburner.core import transitions
from backburner.core.content.file import FileReference
from backburner.core.ids import new_call_id, new_conversation_id, new_run_id
from backburner.store import tables
from backburner.store.mapping import dump_references
from backburner.store.tx import Tx

Call = Callable[..., Ended]


@pytest.fixture
def digests(running: Running) -> list[str]:
    """Give the user two files, the newer one last."""
    chat = transitions.start_chat(new_conversation_id(), running.user, now=NOON)

    def put(tx: Tx) -> list[str]:
        tx.conversations.add(chat)
        place = chat.conversation.id
        return [
            put_file(tx, running.user, place, data, name=name, claims="text/plain")
            for data, name in ((b"test", "\x1b[2Jfirst.txt"), (b"second", "second.txt"))
        ]

    return running.transact(put)


def test_files_are_listed_saved_and_deleted(talk: Call, digests: list[str], tmp_path: Path) -> None:
    first = digests[0]
    listed = talk("files")
    saved = talk("files", "get", first[:10], str(tmp_path / "a.txt"))
    again = talk("files", "get", first, str(tmp_path / "a.txt"))
    kept = talk("files", "delete", first[:10])
    deleted = talk("files", "delete", first[:10], "--yes")
    gone = talk("files", "get", first[:10], str(tmp_path / "b.txt"))

    assert len(listed.out) == 3
    # The size is the same one in both, and a conversation has its short id.
    assert "4 bytes" in listed.out[1] + listed.out[2]
    assert [len(line.split()[-1]) for line in listed.out[1:]] == [12, 12]
    assert any(first[:12] in line and "[2Jfirst.txt" in line for line in listed.out)
    assert not any("\x1b" in line for line in listed.out)
    assert saved.out == [f"Saved: {tmp_path / 'a.txt'} (4 bytes)"]
    assert (tmp_path / "a.txt").read_bytes() == b"test"
    assert (tmp_path / "a.txt").stat().st_mode & 0o077 == 0
    assert (again.code, kept.code) == (4, 2)
    assert deleted.out == [f"Deleted: {first[:12]}."]
    assert (gone.code, "backburner files" in gone.err[0]) == (3, True)
    assert len(talk("files").out) == 2


def test_without_a_name_a_file_goes_to_a_pipe_but_to_no_terminal(
    talk: Call, start: Start, digests: list[str]
) -> None:
    del talk
    assert start("files", "get", digests[0]).end() == Ended(0, ["test"], [])

    with terminal("files", "get", digests[0]) as shown:
        assert shown.end() == 2
        assert "Name the file to save it as." in shown.seen


def test_a_file_of_somebody_else_is_not_there(talk: Call) -> None:
    gone = talk("files", "delete", "0" * 64, "--yes")

    assert gone.code == 3


def test_a_run_is_shown_with_its_files(talk: Call, running: Running) -> None:
    chat = transitions.start_chat(new_conversation_id(), running.user, now=NOON)
    here = chat.conversation.id
    named = FileReference(digest="d1" * 32, size=2048, media_type="image/png", name="a.png")
    run_id, call_id = new_run_id(), new_call_id()
    common = {"user_id": running.user, "conversation_id": here, "epoch": 1, "started_at": NOON}
    run = {
        **common,
        "id": run_id,
        "kind": "reply",
        "status": "success",
        "unattended": False,
        "schedule_revision": 0,
        "ended_at": NOON,
        "tokens": 0,
    }
    call = {
        **common,
        "id": call_id,
        "run_id": run_id,
        "server": "s",
        "tool": "draw",
        "arguments": "{}",
        "digest": "",
        "read_only": True,
        "state": "done",
        "files": dump_references([named]),
    }

    def put(tx: Tx) -> None:
        tx.conversations.add(chat)
        tx.connection.execute(insert(tables.runs).values(run))
        tx.connection.execute(insert(tables.tool_calls).values(call))

    running.transact(put)
    shown = talk("runs", here, run_id)

    assert shown.code == 0, shown.err
    assert any("s/draw" in line.split() for line in shown.out)
    assert shown.out[-2].split() == ["FILE", "SIZE", "TYPE", "NAME"]
    assert shown.out[-1].split() == ["d1d1d1d1d1d1", "2", "KB", "image/png", "a.png"]
