"""Commands that delete something, or cut off what works, ask first; see docs/how-to."""

import inspect
import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

import click
import pytest
from sqlalchemy import update
from support.programs.cli_server import Ask, Call, Running
from support.programs.terminals import terminal

from backburner.cli.main import backburner
from backburner.core.accounts import Role
from backburner.core.ids import ConversationId
from backburner.core.transitions import Step
from backburner.core.work.summary import NewSummary
from backburner.store import tables
from backburner.store.tx import Tx

#: Commands that take something away and do not ask: another command brings it back.
UNDONE_BY = {
    "folders remove": "folders add",
    "grants revoke": "the next yes",
    "models key": "models key",
    "schedule clear": "schedule set",
    "user uninvite": "user invite",
}


@pytest.fixture
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())


def all_commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(backburner)
    for name in backburner.list_commands(context):
        command = backburner.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            for verb, one in command.commands.items():
                yield f"{name} {verb}", one
        else:
            yield name, command


def test_what_deletes_has_the_option_yes_unless_it_can_be_undone() -> None:
    deleting = {
        name: command
        for name, command in all_commands()
        if "server.delete(" in inspect.getsource(inspect.unwrap(command.callback or all_commands))
    }
    without = {
        name
        for name, command in deleting.items()
        if not any("--yes" in option.opts for option in command.params)
    }

    assert {"memories forget", "token revoke", "tasks delete"} <= deleting.keys()
    assert without == set(UNDONE_BY)


@pytest.fixture
def given(talk: Call, ask: Ask, running: Running) -> dict[str, str]:
    """Make something of each kind; return how each is named."""
    change = update(tables.users).where(tables.users.c.id == running.user)
    running.transact(lambda tx: tx.connection.execute(change.values(role=Role.OPERATOR.value)))
    talk("memories", "set", "tea", "With milk.")
    talk("token", "create", "--name", "calendar")
    talk("user", "add", login := f"ada-{running.user[-6:].lower()}")
    job = ask("jobs", "start", "Count.", "--name", "Counted", "--wait")
    chat = ask("conversations", job["parent_id"])

    def summarize(tx: Tx) -> None:
        place = ConversationId(chat["id"])
        summary = NewSummary(session_id="s", text="They count files.")
        tx.summaries.put(running.user, place, summary, outside=False)
        found = tx.conversations.lock(running.user, place)
        tx.conversations.save(Step(conversation=replace(found, summarized=True)))

    running.transact(summarize)
    return {"user": login, "job": job["id"], "chat": chat["id"]}


def asking(given: dict[str, str]) -> list[tuple[tuple[str, ...], str, Callable[[Ask], bool]]]:
    """List each command that asks, what it names, and what shows that nothing was lost."""
    return [
        (("memories", "forget", "tea"), "With milk.", lambda ask: bool(ask("memories", "list"))),
        (("token", "revoke", "calendar"), "calendar", lambda ask: bool(ask("token", "list"))),
        (("jobs", "clear", given["job"]), "Counted", lambda ask: bool(ask("jobs"))),
        (("jobs", "clear", "--in", given["chat"]), "Counted", lambda ask: bool(ask("jobs"))),
        (("summary", given["chat"], "--delete"), "Counted", lambda _: True),
        (("user", "disable", given["user"]), given["user"], lambda _: True),
        (("user", "edit", given["user"], "--role", "operator"), given["user"], lambda _: True),
    ]


@pytest.mark.usefixtures("_no_terminal")
def test_without_a_terminal_yes_is_required(talk: Call, ask: Ask, given: dict[str, str]) -> None:
    for arguments, named, is_there in asking(given):
        refused = talk(*arguments)

        assert refused.code == 2, (arguments, refused)
        assert named in refused.err[0]
        assert refused.err[0].endswith("There is no terminal to ask. Add --yes.")
        assert is_there(ask)

    for arguments, _, _ in asking(given):
        assert talk(*arguments, "--yes").code == 0, arguments
    assert ask("memories", "list") == ask("jobs") == []


@pytest.mark.usefixtures("talk")
def test_in_a_terminal_no_changes_nothing_and_yes_does(ask: Ask, given: dict[str, str]) -> None:
    for arguments, named, is_there in asking(given):
        with terminal(*arguments) as shown:
            shown.answer("[y/N]", "")
            code = shown.end()

        assert (code, named in shown.seen) == (1, True), shown.seen
        assert shown.seen.splitlines()[-1] == "Nothing was changed."
        assert is_there(ask)

    with terminal("memories", "forget", "tea") as shown:
        shown.answer("[y/N]", "y")
        assert shown.end() == 0
    assert ask("memories", "list") == []


@pytest.mark.usefixtures("_no_terminal")
def test_what_is_not_there_is_not_asked_about(talk: Call) -> None:
    assert talk("memories", "forget", "coffee").code == 3
    assert talk("token", "revoke", "calendar").code == 3
    assert talk("jobs", "clear", "--batch", "none").out == ["No matching jobs."]


def test_taking_back_a_disabled_account_is_not_asked_about(
    talk: Call, running: Running, given: dict[str, str]
) -> None:
    del running
    assert talk("user", "disable", given["user"], "--yes").out == [f"Disabled: {given['user']}."]
    assert talk("user", "disable", given["user"], "--undo").out == [f"Enabled: {given['user']}."]
