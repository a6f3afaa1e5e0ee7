"""`backburner folders` and `say --here`, with a real server."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.programs.programs import Ended, Start
from support.requirements import requirement

Call = Callable[..., Ended]


@pytest.fixture
def app(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Start a server, and make the folder of a project."""
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("BACKBURNER_DATA", str(home / "data"))
    start("up", "--port", "0").wait_until_ready()
    folder = home / "code" / "app"
    folder.mkdir(parents=True)
    (folder / "AGENTS.md").write_text("Run the tests first.\n")
    return folder


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _prompt: text)


@requirement("B-folder")
def test_a_folder_is_added_listed_accepted_and_removed(app: Path, call: Call) -> None:
    empty = call("folders", "list")
    added = call("folders", "add", str(app))
    (app / "AGENTS.md").write_text("Do something else.\n")
    changed = call("folders", "list")
    refused = call("folders", "accept", str(app))
    shown = call("folders", "accept", str(app), "--yes")
    again = call("folders", "accept", str(app))
    read_only = call("folders", "add", str(app), "--read-only")
    listed = json.loads("\n".join(call("folders", "list", "--json").out))
    removed = call("folders", "remove", str(app))
    gone = call("folders", "remove", str(app))

    assert empty.out == ["No folders: agents have private workspaces."]
    (told,) = added.out
    assert told.startswith(f"Added {app}: agents may read and change it, without the network.")
    assert told.endswith("They follow AGENTS.md there.")
    assert "instructions changed" in changed.out[1]
    assert (refused.code, refused.err[0].endswith("Add --yes.")) == (2, True)
    assert "-Run the tests first." in shown.out
    assert "+Do something else." in shown.out
    assert shown.out[-1] == "Accepted."
    assert again.out == ["Agents follow these instructions already."]
    assert "agents may read it" in read_only.out[0]
    assert [(one["path"], one["read_only"]) for one in listed] == [(str(app), True)]
    assert removed.out == [f"Removed {app}: agents can no longer use it."]
    assert gone.code == 3


@pytest.mark.parametrize("place", ["/", "~", "~/data", "~/.ssh", "/etc"])
def test_places_that_agents_must_not_see_are_refused_in_words(
    app: Path, call: Call, place: str
) -> None:
    assert app.exists()
    ended = call("folders", "add", place)

    assert ended.code == 2
    assert call("folders", "list").out == ["No folders: agents have private workspaces."]


@requirement("B-folder")
def test_a_folder_in_or_around_another_is_refused_in_words_that_name_it(
    app: Path, call: Call
) -> None:
    (app / "src").mkdir()
    link = app.parent.parent / "link"
    link.symlink_to(app / "src")
    call("folders", "add", str(app))

    for path, shown in ((app / "src", app / "src"), (link, app / "src"), (app.parent, app.parent)):
        for use in ((), ("--read-only",)):
            refused = call("folders", "add", str(path), *use)
            assert refused.code == 4
            (line,) = refused.err
            assert f"{shown} " in line
            assert f"`backburner folders remove {app}`" in line
    listed = json.loads("\n".join(call("folders", "list", "--json").out))
    assert [one["path"] for one in listed] == [str(app)]


def test_a_server_with_folders_in_which_accounts_can_meet_does_not_start(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_FOLDERS", "/srv/{login},/srv/{login}-x")

    ended = start("up", "--port", "0", "--data", tmp_path / "data").end()

    assert ended.code == 2
    (line,) = ended.err
    assert "/srv/{login} and /srv/{login}-x, in which accounts can meet" in line
    assert "/srv/work/{login}" in line


@requirement("B-folder")
def test_say_here_offers_to_add_the_current_folder_and_works_there(
    app: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    (app / "src").mkdir()
    monkeypatch.chdir(app)
    script = call("say", "--here", "hello")
    answer(monkeypatch, "n")
    refused = call("say", "--here", "hello")
    answer(monkeypatch, "y")
    first = call("say", "--here", "hello", "--json")
    monkeypatch.chdir(app / "src")
    answer(monkeypatch, "n")
    below = call("say", "--here", "hello", "--json")
    named = call("say", "--folder", "app", "hello", "--json")

    assert script.code == 2
    assert "There is no terminal to ask. Add the folder first: `" in script.err[0]
    assert refused.code == 1
    assert "Nothing was sent." in refused.err[-1]
    for ended in (first, below, named):
        conversation = json.loads("\n".join(ended.out))["conversation_id"]
        shown = json.loads("\n".join(call("conversations", conversation, "--json").out))
        assert shown["folder"] == str(app)


def test_here_and_folder_are_for_new_conversations(app: Path, call: Call) -> None:
    assert call("say", "-c", "--here", "hello").code == 2
    assert call("say", "--here", "--folder", str(app), "hello").code == 2
    unknown = call("say", "--folder", str(app), "hello")
    assert unknown.code == 3
    assert "folders add" in unknown.err[0]
