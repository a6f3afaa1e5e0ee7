"""Discovery is a user's own to switch on, and looks at what there is while they are silent."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from support.doubles.engine import COMPLETE, Call, End, Say, ScriptedEngine
from support.people.users import add_user
from support.requirements import requirement
from support.stage.make import MATE, NOON, USER
from support.stage.scene import read_everything
from support.stage.silences import let_pass
from support.stage.stage import Stage, prompts

from backburner.actions import discovery
from backburner.actions.deps import DiscoverySettings
from backburner.actions.discovery import LookedAt
from backburner.actions.origin import Origin
from backburner.actions.work import control
from backburner.bus.local import LocalBus
from backburner.core.conversation import Conversation, Kind, PauseReason, Status, Use, WorkFolder
from backburner.core.errors import BadRequest, Conflict, NotAllowed
from backburner.core.ids import UserId
from backburner.core.schedule import Interval
from backburner.core.work.discovery import REPOSITORY
from backburner.core.work.folders import Folder
from backburner.ports import ConversationFilter, ConversationRow, Tx, View
from backburner.store.db import Database
from backburner.tools.toolbox import Toolbox

MINUTE = timedelta(minutes=1)
ALLOWED = DiscoverySettings(allowed=True)


async def a_repository(
    conversation: Conversation, *, may_sign_in: bool, folders: Sequence[str]
) -> str:
    assert (conversation.folder_path is None) == (not folders)
    ci = " and CI" if may_sign_in and REPOSITORY in conversation.state.context else ""
    place = f" in {conversation.folder_path}" if conversation.folder_path else ""
    return f"## main\n M draft.txt of {conversation.user_id}{place}{ci}\n"


def make_stage(database: Database, **more: Any) -> Stage:
    usual: dict[str, Any] = {
        "discovery": ALLOWED,
        "toolbox": Toolbox,
        "describe_repository": a_repository,
    }
    engine = ScriptedEngine(otherwise=lambda _: [Say("I see."), End(COMPLETE)])
    return Stage(database, LocalBus(), engine, **(usual | more))


@pytest.fixture
def stage(either: Database) -> Stage:
    stage = make_stage(either)
    stage.user()
    return stage


def found(stage: Stage, user: UserId = USER) -> list[Conversation]:
    return stage.database.run(
        lambda tx: [
            tx.conversations.load(user, which) for which in tx.discovery.conversation_ids(user)
        ]
    )


async def talk(stage: Stage, text: str, *, user: UserId = USER) -> Conversation:
    chat = await stage.chat(user)
    await stage.say(chat, text)
    await stage.work()
    return chat


@requirement("B-discovery")
async def test_it_is_off_until_the_user_switches_it_on_for_themselves(stage: Stage) -> None:
    stage.user(MATE)
    assert found(stage) == []

    stage.switch_discovery(on=True)
    (looks,) = found(stage)

    assert looks.kind is Kind.DISCOVERY
    assert isinstance(looks.schedule, Interval)
    assert looks.schedule.every == 30 * MINUTE
    assert looks.next_run_at == looks.created_at + 30 * MINUTE
    assert found(stage, MATE) == []
    stage.switch_discovery(on=True)
    assert found(stage) == [looks]


async def test_it_is_not_among_chats_nor_tasks(stage: Stage) -> None:
    stage.switch_discovery(on=True)

    def listed(tx: Tx) -> list[ConversationRow]:
        views = (
            tx.browse.conversations(USER, ConversationFilter(view=view), None, limit=9)
            for view in View
        )
        return [seen for view in views for seen in view.conversations]

    assert stage.database.run(listed) == []


async def test_switched_off_it_ends_for_good_and_switched_on_it_begins_anew(stage: Stage) -> None:
    stage.switch_discovery(on=True)
    (before,) = found(stage)

    stage.switch_discovery(on=False)
    assert found(stage) == []
    assert stage.load(before).status is Status.ARCHIVED
    await talk(stage, "Hello.")
    let_pass(stage, 40 * MINUTE)
    await stage.work()
    assert stage.history(before) == ()

    stage.switch_discovery(on=True)
    (after,) = found(stage)
    assert after.id != before.id


async def test_one_that_stands_still_begins_anew_when_it_is_switched_on(stage: Stage) -> None:
    stage.switch_discovery(on=True)
    (before,) = found(stage)
    await control.pause(stage.deps, Origin.by_user(USER), before.id)

    stage.switch_discovery(on=True)

    (after,) = found(stage)
    assert (after.status, after.pause_reason) == (Status.BACKGROUND, None)
    assert stage.load(before).status is Status.ARCHIVED


async def test_where_it_is_off_for_everybody_nobody_switches_it_on(either: Database) -> None:
    stage = make_stage(either, discovery=DiscoverySettings(allowed=False))
    stage.user()
    with pytest.raises(Conflict, match="Discovery is disabled on this server") as refused:
        stage.switch_discovery(on=True)

    assert "discovery_enabled" in refused.value.hint
    stage.switch_discovery(on=False)
    assert found(stage) == []


@requirement("B-discovery-context")
async def test_while_the_user_is_busy_nothing_runs_and_nothing_is_left_behind(
    stage: Stage,
) -> None:
    stage.switch_discovery(on=True)
    (looks,) = found(stage)
    let_pass(stage, 40 * MINUTE)
    await talk(stage, "Hello.")
    asked, before = len(stage.engine.requests), rows_but(stage, looks)

    await stage.work()

    assert len(stage.engine.requests) == asked
    assert rows_but(stage, looks) == before
    assert (stage.history(looks), stage.said(looks)) == ((), [])
    assert stage.load(looks).next_run_at == looks.next_run_at


def rows_but(stage: Stage, left_out: Conversation) -> dict[str, list[str]]:
    """Read every row but that of one conversation."""
    rows = stage.database.run(read_everything)
    others = [row for row in rows["conversations"] if left_out.id not in row]
    return {**rows, "conversations": others}


@requirement("B-discovery", "B-discovery-context")
async def test_once_the_user_is_silent_it_is_shown_what_there_is_and_says_nothing(
    stage: Stage,
) -> None:
    stage.switch_discovery(on=True)
    (looks,) = found(stage)
    await talk(stage, "I will look at the review tomorrow.")
    await talk(stage, "Of somebody else.", user=MATE)
    await stage.task(
        title="Watch", schedule=Interval(60 * MINUTE, anchor=NOON + 3650 * 24 * 60 * MINUTE)
    )
    let_pass(stage, 40 * MINUTE)
    stage.engine.then(End({"complete": True, "message": "I looked around."}))
    await stage.work()

    (said,) = prompts(stage.engine, looks.id)
    assert "User (chat): I will look at the review tomorrow." in said
    assert "You (chat): I see." in said
    assert "# Open tasks\n- Watch (active, " in said
    assert f" M draft.txt of {USER}\n" in said
    assert "\nIt is " in said
    assert "Of somebody else." not in said
    assert [run.status.value for run in stage.history(looks)] == ["success"]
    assert (stage.said(looks), stage.notices()) == ([], [])
    assert stage.load(looks).outside_read


async def test_it_is_offered_nothing_that_could_begin_something(stage: Stage) -> None:
    stage.switch_discovery(on=True)
    await talk(stage, "Hello.")
    let_pass(stage, 40 * MINUTE)
    await stage.work()

    offered = {offer.tool.name for offer in stage.engine.requests[-1].tools}
    assert offered <= {"task_propose", "task_list", "memory_search", "read_file", "list_files"}
    assert "memory_search" in offered


async def test_one_that_fails_twice_stands_still_and_says_so(stage: Stage) -> None:
    stage.switch_discovery(on=True)
    (looks,) = found(stage)
    await talk(stage, "Hello.")
    for _ in range(2):
        let_pass(stage, 40 * MINUTE)
        stage.engine.then(End({"nonsense": True}))
        stage.engine.then(End({"nonsense": True}))
        await stage.work()

    assert stage.load(looks).pause_reason is PauseReason.FAILURES
    assert len(stage.notices()) == 1


@requirement("B-discovery-context")
async def test_discovery_looks_at_a_project_that_was_named_when_it_was_switched_on(
    stage: Stage,
) -> None:
    folder = Folder(path="/srv/app", machine="", machine_name="", read_only=False, created_at=NOON)
    stage.database.run(lambda tx: tx.folders.put(USER, folder))
    switch_on(stage, LookedAt("app", "ada/app"))
    (looks,) = found(stage)
    assert looks.folder == WorkFolder("/srv/app", read_only=True)
    assert looks.state.context[REPOSITORY] == "ada/app"

    assert await surroundings(stage) == "draft.txt of u_user in /srv/app and CI"
    stage.database.run(lambda tx: add_user(tx, MATE))
    assert await surroundings(stage) == "draft.txt of u_user in /srv/app"
    stage.database.run(lambda tx: tx.folders.remove(USER, "/srv/app", ""))
    looked = len(prompts(stage.engine, looks.id))
    await surroundings(stage)
    assert len(prompts(stage.engine, looks.id)) == looked
    failure = stage.history(looks)[0].failure
    assert failure is not None
    assert "was removed" in failure.message


@requirement("B-propose", "B-folder")
@pytest.mark.parametrize("read_only", [False, True])
async def test_a_proposed_task_has_the_folder_as_its_user_added_it(
    stage: Stage, *, read_only: bool
) -> None:
    folder = Folder(
        path="/srv/app", machine="", machine_name="", read_only=read_only, created_at=NOON
    )
    stage.database.run(lambda tx: tx.folders.put(USER, folder))
    switch_on(stage, LookedAt("app"))
    await talk(stage, "Hello.")
    let_pass(stage, 31 * MINUTE)
    proposed = {"name": "tests", "prompt": "Run the tests.", "interval": "1h", "why": "They fail."}
    stage.engine.then(Call("task_propose", proposed), End(COMPLETE))
    await stage.work()

    (looks,) = found(stage)
    (task,) = stage.database.run(lambda tx: tx.conversations.open_children(USER, looks.id))
    assert looks.folder == WorkFolder("/srv/app", read_only=True)
    assert task.folder == WorkFolder("/srv/app", read_only=read_only)


async def test_a_token_names_a_project_only_with_what_it_was_given(stage: Stage) -> None:
    folder = Folder(path="/srv/app", machine="", machine_name="", read_only=False, created_at=NOON)
    stage.database.run(lambda tx: tx.folders.put(USER, folder))
    none, some = frozenset[Use](), frozenset({Use.FOLDERS, Use.SIGN_INS})
    for project in (LookedAt("app", None, none), LookedAt(None, "ada/app", none)):
        with pytest.raises(NotAllowed):
            switch_on(stage, project)
    assert found(stage) == []

    switch_on(stage, LookedAt("app", "ada/app", some))
    (looks,) = found(stage)
    assert looks.uses == some


async def test_a_name_that_is_no_repository_is_refused_and_changes_nothing(stage: Stage) -> None:
    for name in ("app", "--repo/x", "a/b/c", "a/b --jq x", "a/-b", ""):
        project = LookedAt(None, name)
        with pytest.raises(BadRequest):
            switch_on(stage, project)
    assert found(stage) == []


def switch_on(stage: Stage, project: LookedAt) -> None:
    stage.database.run(lambda tx: discovery.switch(stage.deps, tx, USER, on=True, project=project))


async def surroundings(stage: Stage) -> str:
    """Let discovery look, and return what it was told of the repository."""
    await talk(stage, "Hello.")
    let_pass(stage, 31 * MINUTE)
    await stage.work()
    (looks,) = found(stage)
    text = prompts(stage.engine, looks.id)[-1]
    return next((line[3:] for line in text.splitlines() if "draft.txt" in line), "")
