"""Objects are found by a unique prefix of their id."""

from collections.abc import Callable
from typing import Any

from support.programs.cli_server import Call


def test_a_unique_prefix_is_enough(ask: Callable[..., Any]) -> None:
    conversation_id = ask("say", "--no-wait", "find me")["conversation_id"]

    assert ask("conversations", conversation_id[:20])["id"] == conversation_id
    assert ask("conversations", conversation_id[2:20])["id"] == conversation_id


def test_an_ambiguous_prefix_names_some_of_the_matches(ask: Callable[..., Any], talk: Call) -> None:
    for text in ("first of two", "second of two"):
        ask("say", "--no-wait", text)
    everything = [
        *ask("conversations", "--limit", "500"),
        *ask("conversations", "--limit", "500", "--archived"),
    ]
    ended = talk("conversations", "c_")

    assert ended.code == 2
    assert ended.err[0].startswith(f"{len(everything)} ids start with c_: c_")
    assert ended.err[0].endswith(" Use more characters of the id.")
    assert ended.err[0].count("; ") == min(len(everything), 5) - 1


def test_an_unknown_or_empty_prefix_is_refused(talk: Call) -> None:
    unknown, empty = talk("conversations", "zzzzzzzz"), talk("conversations", "_")

    assert (unknown.code, unknown.err) == (
        3,
        ["No conversation is named zzzzzzzz or has an id that starts with it."],
    )
    assert (empty.code, empty.err) == (
        2,
        ["No conversation given. Use its name, its id, or the start of it."],
    )


def test_a_complete_id_that_does_not_exist_is_not_found(talk: Call) -> None:
    ended = talk("pause", "c_0123456789abcdefghjkmnpqrs")

    assert ended.code == 3
    assert len(ended.err) == 1


def test_names_work_for_conversations_and_jobs_as_for_tasks(
    ask: Callable[..., Any], talk: Call
) -> None:
    said = ask("say", "--no-wait", "a name of its own")
    job = ask("jobs", "start", "Count.", "--name", "tiny")
    waited = talk("jobs", "block", "Tiny")

    assert ask("conversations", "A name of its own")["id"] == said["conversation_id"]
    assert waited.code == 0
    assert ask("jobs", "show", "tiny")["id"] == job["id"]
