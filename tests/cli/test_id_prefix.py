"""Objects are found by a unique prefix of their id."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import update
from support.programs.cli_server import Call, Running

from backburner.cli.command_name import COMMAND_VARIABLE
from backburner.core.accounts import Role
from backburner.store import tables


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


def test_an_unknown_or_empty_prefix_is_refused(
    talk: Call, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMMAND_VARIABLE, "backburner")
    change = update(tables.users).where(tables.users.c.id == running.user)
    running.transact(lambda tx: tx.connection.execute(change.values(role=Role.OPERATOR.value)))
    unknown, empty = talk("conversations", "zzzzzzzz"), talk("conversations", "_")

    missing = "No conversation is named zzzzzzzz or has an id that starts with it."
    assert (unknown.code, unknown.err) == (3, [f"{missing} See `backburner conversations`."])
    assert talk("tasks", "show", "zzz").err[0].endswith("See `backburner tasks`.")
    assert talk("jobs", "show", "zzz").err[0].endswith("See `backburner jobs`.")
    assert talk("answer", "q_zzz", "yes").err[0].endswith("See `backburner questions`.")
    assert talk("grants", "revoke", "g_zzz").err[0].endswith("See `backburner grants`.")
    assert talk("user", "uninvite", "zzz").err[0].endswith("See `backburner user invitations`.")
    assert talk("sessions", "end", "zzz").err[0].endswith("See `backburner sessions`.")
    assert talk("memories", "show", "zzz").err == [
        "There is no memory 'zzz'. See `backburner memories`."
    ]
    assert (empty.code, empty.err) == (
        2,
        ["No conversation given. Use its name, its id, or the start of it."],
    )


def test_a_complete_id_that_does_not_exist_is_not_found(talk: Call) -> None:
    ended = talk("pause", "c_0123456789abcdefghjkmnpqrs")

    assert ended.code == 3
    assert len(ended.err) == 1


def test_a_name_as_long_as_an_id_is_a_name(ask: Callable[..., Any], talk: Call) -> None:
    name = "twenty-eight characters long"
    said = ask("say", "--no-wait", name)
    task = ask("tasks", "add", name, "Look.", "--when", "every day at 9")
    job = ask("jobs", "start", "Count.", "--name", name, "--in", said["conversation_id"])

    assert ask("tasks", "show", name)["id"] == task["id"]
    assert ask("jobs", "show", name)["id"] == job["id"]
    assert talk("conversations", name).code == 2


def test_names_work_for_conversations_and_jobs_as_for_tasks(
    ask: Callable[..., Any], talk: Call
) -> None:
    said = ask("say", "--no-wait", "a name of its own")
    job = ask("jobs", "start", "Count.", "--name", "tiny")
    waited = talk("jobs", "block", "Tiny")

    assert ask("conversations", "A name of its own")["id"] == said["conversation_id"]
    assert waited.code == 0
    assert ask("jobs", "show", "tiny")["id"] == job["id"]
    # Its conversation is named like it.
    both = talk("runs", "tiny")
    assert both.code == 2
    assert f"{job['id']} (job)" in both.err[0]
    assert f"{job['parent_id']} (chat)" in both.err[0]
