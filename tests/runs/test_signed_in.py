"""Runs that use a program with its own sign-in: one question, its grants, and who has the tool."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.doubles.engine import Call, ScriptedEngine
from support.doubles.tools import ALONE
from support.people.users import add_user
from support.programs.signed_in import SignedInOwner
from support.requirements import requirement
from support.stage.make import NOON
from support.stage.stage import Stage

from backburner.bus.local import LocalBus
from backburner.core.conversation import Conversation, Use
from backburner.core.ids import UserId
from backburner.core.question import NO, YES, Purpose
from backburner.core.tool_policy import ALWAYS_HERE
from backburner.core.work.folders import Folder
from backburner.gateway.network import CheckedNetwork
from backburner.ports import Offer
from backburner.process.shell import ConfinedShell
from backburner.store import tables
from backburner.store.db import Database
from backburner.tools.command_records import FolderInUse, record_command
from backburner.tools.obeyed_scan import Snapshot
from backburner.tools.toolbox import Toolbox
from backburner.tools.workspace import CommandTerms, workspace_offers

LIST = ("run", "list", "-R", "a/b")
FIRST = """\
May I do this?
run_signed_in:
    gh run list -R a/b
Use your gh sign-in (octocat at github.com) here?"""


def gh(*arguments: str, **more: Any) -> Call:
    return Call("run_signed_in", {"program": "gh", "arguments": [*arguments], **more})


@pytest.fixture
def owner(tmp_path: Path) -> SignedInOwner:
    return SignedInOwner(tmp_path)


def offers_of(owner: SignedInOwner, terms: CommandTerms) -> list[Offer]:
    kept, shell = owner.root / "kept", ConfinedShell()
    sign_ins = owner.sign_ins()
    return [*workspace_offers(owner.folder, kept, shell, CheckedNetwork(), terms, sign_ins)]


@pytest.fixture
def stage(database: Database, owner: SignedInOwner) -> Stage:
    return Stage(
        database,
        LocalBus(),
        ScriptedEngine(),
        toolbox=lambda deps: Toolbox(
            deps, lambda _user, terms: offers_of(owner, terms), has_sign_ins=True
        ),
    )


async def ask(stage: Stage, chat: Conversation, call: Call) -> None:
    stage.engine.then(call)
    await stage.say(chat, "Look.")
    await stage.work()


def results(stage: Stage) -> list[str]:
    rows = stage.database.run(
        lambda tx: tx.connection.execute(
            tables.tool_calls.select().order_by(tables.tool_calls.c.id)
        ).all()
    )
    return [row.result for row in rows]


@requirement("B-signed-in")
async def test_the_first_use_of_a_sign_in_is_part_of_one_question(
    stage: Stage, owner: SignedInOwner
) -> None:
    chat = await stage.chat()
    await ask(stage, chat, gh(*LIST))

    question = stage.question(chat)
    assert question.prompt == FIRST
    assert (question.purpose, question.options) == (Purpose.APPROVAL, (YES, ALWAYS_HERE, NO))

    stage.engine.then(gh(*LIST))
    await stage.answer(chat, ALWAYS_HERE)
    await stage.work()
    await ask(stage, chat, gh(*LIST, "--limit", "5"))

    signed_in = f"signed in as octocat at github.com in {owner.folder}"
    assert results(stage) == [
        f"{signed_in} {[*LIST]}\n[Exit code 0.]",
        f"{signed_in} {[*LIST, '--limit', '5']}\n[Exit code 0.]",
    ]

    await ask(stage, chat, gh("run", "cancel", "5", "-R", "a/b"))
    assert stage.question(chat).prompt.endswith("It uses your gh sign-in (octocat at github.com).")


@requirement("B-signed-in", "B-folder")
async def test_a_program_in_another_folder_of_agents_is_not_trusted(
    stage: Stage, owner: SignedInOwner
) -> None:
    chat = await stage.chat()
    folder = Folder(
        path=str(owner.programs), machine="", machine_name="", read_only=False, created_at=NOON
    )
    stage.database.run(lambda tx: tx.folders.put(chat.user_id, folder))

    await ask(stage, chat, gh(*LIST))

    assert stage.load(chat).questions == ()
    assert "agents can write" in stage.engine.results[-1].text


@requirement("B-signed-in")
async def test_a_yes_is_for_one_call_and_no_for_none(stage: Stage) -> None:
    chat = await stage.chat()
    await ask(stage, chat, gh(*LIST))
    stage.engine.then(gh(*LIST), gh(*LIST))
    await stage.answer(chat, YES)
    await stage.work()

    assert len(results(stage)) == 1
    assert stage.question(chat).prompt == FIRST
    await stage.answer(chat, NO)
    await stage.work()
    assert len(results(stage)) == 1


@pytest.mark.parametrize(
    ("arguments", "read_only"),
    [(LIST, True), (("api", "x", "--method", "POST"), False), ((*LIST, "--jq", "."), False)],
)
async def test_only_reading_subcommands_may_be_repeated_after_a_crash(
    stage: Stage, arguments: tuple[str, ...], *, read_only: bool
) -> None:
    chat = await stage.chat()
    await ask(stage, chat, gh(*arguments))
    stage.engine.then(gh(*arguments))
    await stage.answer(chat, YES)
    await stage.work()

    (row,) = stage.database.run(lambda tx: tx.connection.execute(tables.tool_calls.select()).all())
    assert row.read_only is read_only


@requirement("B-signed-in")
async def test_without_a_sign_in_nobody_is_asked(stage: Stage, owner: SignedInOwner) -> None:
    (owner.home / ".config/gh/hosts.yml").unlink()
    chat = await stage.chat()

    await ask(stage, chat, gh(*LIST))

    assert stage.load(chat).questions == ()
    assert results(stage) == []


async def test_a_subcommand_that_shows_the_sign_in_is_denied_without_a_question(
    stage: Stage,
) -> None:
    chat = await stage.chat()

    await ask(stage, chat, gh("auth", "token"))

    assert stage.load(chat).questions == ()
    assert results(stage) == []


async def offered(stage: Stage, chat: Conversation) -> list[str]:
    await stage.say(chat, "Look.")
    await stage.work()
    return [offer.tool.name for offer in stage.engine.requests[-1].tools]


@requirement("B-signed-in")
async def test_a_team_has_no_sign_ins(stage: Stage) -> None:
    chat = await stage.chat()
    stage.database.run(lambda tx: add_user(tx, UserId("u_mate")))

    assert "run_signed_in" not in await offered(stage, chat)


@requirement("B-signed-in")
async def test_a_call_is_denied_once_there_is_another_user(owner: SignedInOwner) -> None:
    async def somebody() -> bool:
        return True

    terms = replace(ALONE, may_sign_in=True, has_others=somebody)
    (offer,) = [one for one in offers_of(owner, terms) if one.tool.name == "run_signed_in"]

    result = await offer.run({"program": "gh", "arguments": [*LIST]})

    assert result.failed
    assert result.text.startswith("Sign-ins are used only where one user has an account.")


@pytest.mark.parametrize(
    ("uses", "is_offered"), [(None, True), (frozenset(), False), (frozenset({Use.SIGN_INS}), True)]
)
async def test_work_of_a_token_has_sign_ins_only_if_they_were_named(
    stage: Stage, uses: frozenset[Use] | None, *, is_offered: bool
) -> None:
    await stage.task(uses=uses)
    await stage.work()

    names = [offer.tool.name for offer in stage.engine.requests[-1].tools]
    assert ("run_signed_in" in names) is is_offered


def test_where_nothing_holds_commands_there_are_no_sign_ins(owner: SignedInOwner) -> None:
    shell, terms = ConfinedShell(unconfined=True), replace(ALONE, may_sign_in=True)
    made = workspace_offers(
        owner.folder, owner.root, shell, CheckedNetwork(), terms, owner.sign_ins()
    )

    assert "run_signed_in" not in [offer.tool.name for offer in made]


async def test_files_that_other_programs_obey_are_put_back(owner: SignedInOwner) -> None:
    terms = replace(ALONE, may_sign_in=True)
    (offer,) = [one for one in offers_of(owner, terms) if one.tool.name == "run_signed_in"]

    result = await offer.run({"program": "gh", "arguments": ["api", "write", ".envrc"]})

    assert "Put back, because other programs obey these files: .envrc" in result.text
    assert [call.tool.name for call, _ in result.asks] == ["keep_change"]
    assert not await asyncio.to_thread((owner.folder / ".envrc").exists)


@requirement("B-signed-in")
def test_a_program_with_a_sign_in_runs_beside_no_other_command(tmp_path: Path) -> None:
    def begin(**kind: Any) -> object:
        return record_command(tmp_path, Snapshot, ALONE.turn, "x", **kind)

    first = begin(network=True)
    with pytest.raises(FolderInUse, match="a program with a sign-in cannot run"):
        begin(network=True, signed_in=True)
    del first
    second = begin(network=True, signed_in=True)
    for other in ({}, {"network": True}):
        with pytest.raises(FolderInUse):
            begin(**other)
    assert begin(network=True, signed_in=True) is not second
