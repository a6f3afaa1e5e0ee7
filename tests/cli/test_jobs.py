"""`backburner jobs`, with a real server: `backburner up` with the demo agent."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.programs.programs import Ended, starter

Call = Callable[..., Ended]
#: What the demo says of whatever it does not understand.
ANSWER = "I am a demo without a language model"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Start a server for all tests here, and give its folder."""
    data = tmp_path_factory.mktemp("data")
    with starter() as start:
        start("up", "--port", "0", "--data", data).wait_until_ready()
        yield data


@pytest.fixture
def jobs(call: Call, data: Path) -> Call:
    return lambda command, *more: call("jobs", command, *more, "--data", str(data))


@pytest.fixture
def ask(jobs: Call) -> Callable[..., Any]:
    """Give what a command answers in JSON."""

    def ask(*arguments: str) -> Any:
        ended = jobs(*arguments, "--json")
        assert ended.code == 0, ended.err
        return json.loads("\n".join(ended.out))

    return ask


def test_a_job_is_started_awaited_shown_followed_up_and_removed(
    jobs: Call, ask: Callable[..., Any]
) -> None:
    started = ask("start", "Count", "the", "files.", "--name", "Count")
    which = started["id"][:12]
    (done,) = ask("block", which)
    shown = jobs("show", which)
    resumed = jobs("resume", which, "And", "again.")
    awaited = jobs("block", which)
    listed = jobs("list", "--in", started["parent_id"])
    removed = jobs("clear", which)
    gone = jobs("show", which)

    assert (started["status"], started["prompt"]) == ("running", "Count the files.")
    assert ANSWER in done["result"]
    assert shown.out[0].split() == ["id", started["id"]]
    assert any(ANSWER in line for line in shown.out)
    assert resumed.out == ["It works on it: Count."]
    assert awaited.code == 0
    assert [line.split()[:2] for line in listed.out] == [
        ["ID", "STATUS"],
        [which[:10], "completed"],
    ]
    assert removed.out == [f"Removed: {which[:10]} Count."]
    assert gone.code == 3


def test_a_batch_is_listed_cancelled_and_removed_as_one(
    jobs: Call, ask: Callable[..., Any], call: Call, data: Path
) -> None:
    call("pause", "--everything", "--data", str(data))
    for name in ("one", "two"):
        ask("start", "Count.", "--name", name, "--batch", "both")
    waited = jobs("block", ask("list", "--batch", "both")[0]["id"], "--timeout", "0")
    cancelled = jobs("cancel", "--batch", "both")
    again = jobs("cancel", ask("list", "--batch", "both")[0]["id"])
    call("resume", "--everything", "--data", str(data))
    removed = jobs("clear", "--batch", "both")

    assert (waited.code, waited.err[0].split()[-1]) == (1, "running.")
    assert sorted(line.split()[-1] for line in cancelled.out) == ["one.", "two."]
    assert again.code == 4
    assert len(removed.out) == 2
    assert jobs("clear", "--batch", "both").out == ["There was nothing to do."]
    assert ask("list", "--batch", "both") == []


def test_without_a_word_more_they_are_listed(
    call: Call, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_DATA", str(data))
    listed = call("jobs")

    assert listed.code == 0
    assert listed.out == ["There are none."] or listed.out[0].startswith("ID")


def test_it_has_to_be_said_which(jobs: Call) -> None:
    assert jobs("cancel").code == 2
    assert jobs("clear").code == 2
    assert jobs("list", "--status", "odd").code == 2
