"""Commands that ended with their process: what has changed since is shown, and left as it is."""

import errno
import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from support.doubles.engine import Call, ScriptedEngine, Step
from support.doubles.tools import ALONE
from support.requirements import requirement
from support.stage.make import USER
from support.stage.stage import Stage

from backburner.actions import conversations
from backburner.bus.local import LocalBus
from backburner.core.commands import Cage
from backburner.core.conversation import Conversation, Status
from backburner.core.errors import StoreFailed
from backburner.core.ids import UserId
from backburner.core.question import NO, YES, Purpose
from backburner.gateway.network import CheckedNetwork
from backburner.ports import InterruptedCommand, Offer, TurnRequest
from backburner.process.shell import ConfinedShell
from backburner.store.db import Database
from backburner.tools.command_records import CommandRecord, left_behind, record_command
from backburner.tools.interrupted_commands import InterruptedCommands
from backburner.tools.obeyed_files import ObeyedFiles
from backburner.tools.obeyed_scan import Snapshot
from backburner.tools.toolbox import Toolbox
from backburner.tools.workspace import CommandTerms, workspace_offers
from backburner.worker.interruption_reporter import InterruptionReporter

LINE = "make\n--all"


class House:
    """A workspace of the user in a data folder, and a stage whose agent works there."""

    def __init__(self, data: Path, database: Database) -> None:
        self.kept = data / "kept_changes" / USER
        self.folder = data / "workspaces" / USER
        self.folder.mkdir(parents=True)
        self.obeyed = ObeyedFiles(self.folder, self.kept)
        self.stage = Stage(
            database,
            LocalBus(),
            ScriptedEngine(),
            toolbox=lambda deps: Toolbox(deps, lambda _user, terms: self.offers(terms)),
            interrupted_commands=InterruptedCommands(data / "workspaces", self.kept.parent).take,
        )
        self.reporter = InterruptionReporter(self.stage.deps)

    def offers(self, terms: CommandTerms) -> list[Offer]:
        shell, network = ConfinedShell(), CheckedNetwork()
        return [*workspace_offers(self.folder, self.kept, shell, network, terms)]

    def begin(self, place: Conversation, line: str = LINE) -> CommandRecord:
        turn = replace(ALONE.turn, conversation_id=place.id)
        return record_command(self.kept, self.obeyed.scan, turn, line)

    async def report(self) -> None:
        """Look twice: what is found for the first time may not have ended yet."""
        await self.reporter.run_once()
        await self.reporter.run_once()

    def write(self, **files: str) -> None:
        for name, content in files.items():
            (self.folder / f".{name}").write_text(content)

    def records(self) -> list[str]:
        return sorted(file.name.partition("-")[0] for file in self.kept.glob("[!.]*"))


@pytest.fixture
def house(tmp_path: Path, database: Database) -> House:
    return House(tmp_path / "data", database)


async def interrupt(house: House, place: Conversation) -> None:
    """Let a command change two files, and its process end."""
    house.write(envrc="export A=1\n", bashrc="same\n")
    record = house.begin(place)
    house.write(envrc="export A=2\n", npmrc="new\n", bashrc="same\n")
    record.release()


def undo_all(request: TurnRequest) -> list[Step]:
    changes = dict.fromkeys(re.findall(r"change-\w+", request.prompt))
    return [Call("undo_change", {"change": change}) for change in changes]


async def test_the_difference_is_shown_once_and_put_back_after_a_yes(house: House) -> None:
    chat = await house.stage.chat()
    await interrupt(house, chat)

    await house.report()
    await house.report()

    (question,) = house.stage.load(chat).questions
    assert (question.purpose, question.options) == (Purpose.APPROVAL, (YES, NO))
    assert re.sub(r"change-\w+", "ID", question.prompt) == (
        "This command was interrupted, because Backburner or its machine stopped:\n"
        "    make\n    --all\n"
        "Files that other programs obey are not what they were before it began. The command may"
        " have changed them, or you; nothing was put back.\n"
        "May I put back what was there before? After a no they stay as they are.\n"
        'undo_change {"change":"ID"}\n'
        "Changed: the file .envrc:\n    @@ -1 +1 @@\n    -export A=1\n    +export A=2\n"
        'undo_change {"change":"ID"}\n'
        "Created: the file .npmrc:\n    @@ -0,0 +1 @@\n    +new"
    )
    assert (house.folder / ".envrc").read_text() == "export A=2\n"

    house.stage.engine.then_as(undo_all)
    await house.stage.answer(chat, YES)
    await house.stage.work()

    assert [result.text for result in house.stage.engine.results] == [
        ".envrc is now as it was before the command.",
        ".npmrc was removed: it was not there before the command.",
    ]
    assert (house.folder / ".envrc").read_text() == "export A=1\n"
    assert not (house.folder / ".npmrc").exists()
    # What was there is not lost.
    assert house.records() == ["before", "change", "change"]


@requirement("Z-approve")
async def test_the_session_that_is_told_of_the_difference_is_marked(house: House) -> None:
    chat = await house.stage.chat()
    await interrupt(house, chat)
    await house.report()
    assert not house.stage.load(chat).outside_read

    await house.stage.answer(chat, NO)
    await house.stage.work()

    assert house.stage.load(chat).outside_read


async def test_the_preview_of_an_undo_shows_what_it_does(house: House) -> None:
    await interrupt(house, await house.stage.chat())
    (undo,) = [one for one in house.offers(ALONE) if one.tool.name == "undo_change"]
    assert undo.preview is not None
    await house.reporter.run_once()

    async with house.stage.deps.interrupted_commands() as (command,):
        shown = [await undo.preview(call.arguments) for call, _ in command.calls]

    assert shown == [
        "Put back the file .envrc:\n    @@ -1 +1 @@\n    -export A=2\n    +export A=1",
        "Remove the file .npmrc, which was not there before:\n    @@ -1 +0,0 @@\n    -new",
    ]


async def test_after_a_no_the_files_stay_and_nobody_asks_again(house: House) -> None:
    chat = await house.stage.chat()
    await interrupt(house, chat)
    await house.report()

    await house.stage.answer(chat, NO)
    await house.stage.work()
    await house.report()

    assert (house.folder / ".envrc").read_text() == "export A=2\n"
    assert house.stage.load(chat).questions == ()


async def test_an_edit_since_the_question_is_not_lost(house: House) -> None:
    chat = await house.stage.chat()
    await interrupt(house, chat)
    await house.report()
    house.write(envrc="export MINE=1\n", npmrc="mine\n")

    house.stage.engine.then_as(undo_all)
    await house.stage.answer(chat, YES)
    await house.stage.work()

    assert all("has changed since" in result.text for result in house.stage.engine.results)
    assert (house.folder / ".envrc").read_text() == "export MINE=1\n"
    assert (house.folder / ".npmrc").read_text() == "mine\n"


async def test_an_agent_that_may_only_run_commands_may_put_back_too(house: House) -> None:
    task = await house.stage.task(tools=("run_command",))
    offers = await house.stage.deps.toolbox.offers(ALONE.turn, task)

    assert [offer.tool.name for offer in offers] == ["run_command", "keep_change", "undo_change"]


async def test_a_command_after_which_nothing_differs_is_forgotten(house: House) -> None:
    chat = await house.stage.chat()
    house.write(envrc="export A=1\n", npmrc="deleted\n")
    record = house.begin(chat)
    (house.folder / ".npmrc").unlink()
    record.release()

    await house.report()

    assert house.stage.load(chat).questions == ()
    assert house.records() == ["before"]


async def test_a_command_whose_process_lives_is_left_alone(house: House) -> None:
    chat = await house.stage.chat()
    record = house.begin(chat)
    house.write(envrc="export A=1\n")

    await house.report()
    assert house.stage.load(chat).questions == ()

    record.release()
    # Its own processes may live on for some seconds.
    await house.reporter.run_once()
    assert house.stage.load(chat).questions == ()
    await house.reporter.run_once()
    assert len(house.stage.load(chat).questions) == 1


async def test_a_process_that_ends_after_the_question_does_not_have_it_asked_twice(
    house: House,
) -> None:
    chat = await house.stage.chat()
    await interrupt(house, chat)

    @asynccontextmanager
    async def end_early() -> AsyncIterator[Sequence[InterruptedCommand]]:
        async with house.stage.deps.interrupted_commands() as commands:
            yield commands
            raise StoreFailed

    dies = InterruptionReporter(replace(house.stage.deps, interrupted_commands=end_early))
    for _ in range(3):
        with pytest.raises(StoreFailed):
            await dies.run_once()
    assert "command" in house.records()

    await house.report()

    assert len(house.stage.load(chat).questions) == 1
    # Each change is kept once.
    assert house.records() == ["before", "change", "change"]


async def test_an_edit_that_the_question_did_not_show_is_not_undone(house: House) -> None:
    chat = await house.stage.chat()
    await interrupt(house, chat)
    await house.reporter.run_once()
    # The record stays, as if the process ended right after the question.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CommandRecord, "remove", lambda record: record.release())
        await house.reporter.run_once()
    house.write(envrc="edited by the user\n")
    await house.report()

    house.stage.engine.then_as(undo_all)
    await house.stage.answer(chat, YES)
    await house.stage.work()

    assert (house.folder / ".envrc").read_text() == "edited by the user\n"


@pytest.mark.parametrize("gone", ["archived", "deleted"])
async def test_where_the_conversation_is_gone_a_new_one_asks(house: House, gone: str) -> None:
    stage = house.stage
    chat = replace(await stage.chat(), uses=frozenset(), tools=("run_command",))
    stage.database.run(lambda tx: tx.conversations.update(chat))
    await interrupt(house, chat)
    await conversations.archive(stage.deps, USER, chat.id)
    if gone == "deleted":
        await conversations.delete(stage.deps, USER, chat.id)

    await house.report()

    asked = stage.database.run(lambda tx: tx.browse.questions(USER, None, limit=10))
    (place,) = {row.conversation_id for row in asked}
    assert place != chat.id
    other = stage.database.run(lambda tx: tx.conversations.load(USER, place))
    assert (other.title, other.status) == ("Interrupted command", Status.WAITING_INPUT)
    # It has no more rights than the one that is gone.
    assert (other.uses, other.outside_read) == (frozenset(), True)
    assert other.tools == (None if gone == "deleted" else chat.tools)
    house.stage.engine.then_as(undo_all)
    await stage.answer(other, YES)
    await stage.work()
    assert (house.folder / ".envrc").read_text() == "export A=1\n"


async def test_nobody_is_asked_for_a_user_who_is_gone(house: House) -> None:
    record = record_command(house.kept, house.obeyed.scan, ALONE.turn, LINE)
    house.write(envrc="export A=1\n")
    record.release()

    await house.report()

    assert "command" not in house.records()


async def test_a_record_that_cannot_be_read_is_dropped(house: House) -> None:
    house.kept.mkdir(parents=True)
    (house.kept / "command-broken.json").write_text("{")

    await house.report()

    assert house.records() == []


async def test_a_broken_workspace_holds_up_nobody_else(house: House) -> None:
    chat = await house.stage.chat()
    await interrupt(house, chat)
    kept, folder = house.kept.with_name("user-broken"), house.folder.with_name("user-broken")
    turn = replace(ALONE.turn, user_id=UserId("user-broken"))
    record_command(kept, Snapshot, turn, LINE).release()
    folder.symlink_to(folder)

    await house.report()

    assert len(house.stage.load(chat).questions) == 1
    assert "command" not in house.records()
    # It is compared once that is possible.
    assert len(left_behind(kept)) == 1


async def test_a_record_that_cannot_be_read_now_stays(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_record: CommandRecord) -> None:
        raise OSError(errno.EIO, "Input/output error")

    chat = await house.stage.chat()
    await interrupt(house, chat)
    with monkeypatch.context() as patch:
        patch.setattr(CommandRecord, "read", fail)
        await house.report()
    assert house.stage.load(chat).questions == ()

    await house.report()

    assert len(house.stage.load(chat).questions) == 1


async def test_a_record_lasts_as_long_as_its_command_and_is_private(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = list[str]()
    real = os.fsync

    def note(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    (command,) = [one for one in house.offers(ALONE) if one.tool.name == "run_command"]
    for _ in range(2):
        await command.run({"command": "true"})
    assert house.records() == ["before"]
    kinds = [re.split(r"[-.]", name)[0] or "new" for name in synced]
    # What has not changed is not written again.
    assert kinds == ["new", "command", USER, "command", USER]
    assert house.kept.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in house.kept.iterdir()} == {0o600}


async def test_a_command_that_only_reads_has_no_record(house: House) -> None:
    offers = house.offers(replace(ALONE, cage=Cage.LOOK))
    (command,) = [one for one in offers if one.tool.name == "run_command"]

    await command.run({"command": "true"})

    assert not house.kept.exists()


def test_snapshots_that_no_record_needs_are_removed(house: House) -> None:
    first = record_command(house.kept, house.obeyed.scan, ALONE.turn, LINE)
    (house.kept / ".new-unfinished").touch()
    for number in range(3):
        house.write(envrc=f"export A={number}\n")
        # The first has the same snapshot while it runs.
        record_command(house.kept, house.obeyed.scan, ALONE.turn, LINE).remove()

    assert house.records() == ["before", "command"]
    assert first.read() == (ALONE.turn, LINE, Snapshot(), None)
    first.release()
    (found,) = left_behind(house.kept)
    assert found.read() == (ALONE.turn, LINE, Snapshot(), None)
    found.remove()
    record_command(house.kept, house.obeyed.scan, ALONE.turn, LINE).remove()
    assert house.records() == ["before"]


def test_a_command_begins_anew_while_an_interrupted_one_is_looked_at(house: House) -> None:
    record_command(house.kept, house.obeyed.scan, ALONE.turn, LINE).release()
    house.write(envrc="export A=1\n")
    (found,) = left_behind(house.kept)

    new = record_command(house.kept, house.obeyed.scan, ALONE.turn, LINE)

    # What the interrupted one changed is not put back when this one ends.
    assert list(new.before.files) == [".envrc"]
    new.remove()
    found.remove()
    assert set(house.records()) == {"before"}


def test_a_record_that_goes_meanwhile_does_no_harm(house: House) -> None:
    house.kept.mkdir(parents=True)
    (house.kept / "command-gone.json").symlink_to("nowhere")

    record_command(house.kept, house.obeyed.scan, ALONE.turn, LINE).release()

    assert len(left_behind(house.kept)) == 1


def test_a_record_keeps_everything_that_was_there(house: House) -> None:
    (house.folder / ".vscode").mkdir()
    (house.folder / ".git").mkdir()
    (house.folder / os.fsdecode(b".vscode/\xff")).write_bytes(bytes(range(256)))
    (house.folder / ".envrc").symlink_to("/else\nwhere")
    before = house.obeyed.scan()

    record = record_command(house.kept, house.obeyed.scan, ALONE.turn, LINE)

    assert record.read() == (ALONE.turn, LINE, before, None)
    assert len(before.files) == 2
    assert before.repositories == {".git"}
    digests = {Snapshot().digest(), before.digest()}
    for path, state in before.files.items():
        for other in (replace(state, mode=0), replace(state, size=9), replace(state, data=b"x")):
            digests.add(Snapshot({**before.files, path: other}, before.repositories).digest())
    digests.add(Snapshot(before.files).digest())
    assert len(digests) == 9
