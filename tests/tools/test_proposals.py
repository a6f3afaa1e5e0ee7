"""Tasks that the user did not ask for wait for approval; what runs may do to tasks."""

from datetime import timedelta
from typing import Any

import pytest
from support.doubles.engine import Call, End
from support.people import tool_calls
from support.people.task_calls import WATCH, WHY, add, call, propose, read_outside, tell, work_turn
from support.people.tool_calls import ask, children
from support.requirements import requirement
from support.stage.make import MATE, USER
from support.stage.stage import Stage

from backburner.actions import conversations, questions
from backburner.actions.create import MAX_OPEN_PROPOSALS
from backburner.actions.origin import Origin
from backburner.actions.schedules import Timing
from backburner.actions.work import control, tasks
from backburner.actions.work.control import TaskChanges
from backburner.core.connections.connection import Connection, ConnectionState
from backburner.core.conversation import (
    Author,
    Conversation,
    EndedAs,
    Notify,
    PauseReason,
    Status,
)
from backburner.core.errors import Conflict, NotFound
from backburner.core.ids import GrantId, new_connection_id
from backburner.core.question import Purpose, Question
from backburner.core.run import RunKind
from backburner.core.schedule import Cron
from backburner.core.tool_policy import Grant
from backburner.core.work.views import TaskStatus, task_status
from backburner.ports import Tx
from backburner.store import tables

MONDAYS = Cron("33 3 * * 1", "UTC")


async def at_work(stage: Stage) -> tuple[Conversation, Origin]:
    """Let a background run be under way, and give where it is."""
    work = await stage.task(title="own work")
    return work, Origin.of(await work_turn(stage, work))


async def with_proposal(stage: Stage) -> tuple[Conversation, Conversation, Question]:
    chat = await stage.chat()
    await ask(stage, chat, propose())
    (task,) = children(stage, chat)
    return chat, task, stage.question(task)


def dismissed_ago(stage: Stage, task: Conversation, ago: timedelta) -> None:
    change = tables.conversations.update().where(tables.conversations.c.id == task.id)
    stage.database.run(lambda tx: tx.connection.execute(change.values(ended_at=tx.now - ago)))


@requirement("B-propose")
async def test_a_proposal_says_what_why_and_how_to_answer_and_runs_after_a_yes(
    stage: Stage,
) -> None:
    chat = await stage.chat()
    (result,) = await ask(stage, chat, propose(max_runs=3))
    (task,) = children(stage, chat)

    question = stage.question(task)
    assert (task_status(task), question.purpose) == (TaskStatus.PROPOSED, Purpose.PROPOSAL)
    assert question.prompt == (
        f"Proposed task: watch-ci-main\n> {WHY}\n"
        f"It would run at 03:33 on Monday (UTC), at most 3 times:\n> {WATCH['prompt']}\n"
        f"Nothing runs before you approve it: `backburner approve {task.id[:12]}`"
        f" or `backburner reject {task.id[:12]}`."
    )
    assert stage.notices() == [question.prompt]
    assert result.startswith(
        f"Proposed: task 'watch-ci-main' ({task.id}), at 03:33 on Monday (UTC)."
    )
    assert "Nothing runs before the owner approves it" in result
    refused = await tell(stage, chat, "task_run_now", task="watch-ci-main")
    assert refused.startswith("This conversation waits for your answer.")
    assert not stage.history(task)

    begun = await tasks.approve(stage.deps, chat.user_id, task.id, shown=question.id)

    assert (begun.status, begun.schedule) == (Status.BACKGROUND, MONDAYS)
    assert begun.created_by is Author.AGENT
    with pytest.raises(Conflict):
        await tasks.approve(stage.deps, chat.user_id, task.id)


@requirement("B-tools", "B-propose", "B-fields")
async def test_a_task_added_by_a_background_run_is_only_proposed(stage: Stage) -> None:
    work, origin = await at_work(stage)
    result = await call(stage, origin, "task_add", **WATCH)

    (child,) = children(stage, work)
    assert (task_status(child), child.created_by) == (TaskStatus.PROPOSED, Author.AGENT)
    assert result.text.startswith("Proposed: task 'watch-ci-main'")


@requirement("B-tools", "B-propose")
async def test_a_task_added_after_reading_outside_text_is_only_proposed(stage: Stage) -> None:
    chat = await stage.chat()
    read_outside(stage, chat)
    (result,) = await ask(stage, chat, add())

    assert result.startswith("Proposed: task 'watch-ci-main'")
    assert [task_status(child) for child in children(stage, chat)] == [TaskStatus.PROPOSED]


@requirement("B-propose")
async def test_a_run_proposes_three_things_and_no_more(stage: Stage) -> None:
    work, origin = await at_work(stage)
    for number in range(3):
        made = await call(
            stage,
            origin,
            "task_propose",
            **WATCH | {"name": f"{number}", "prompt": f"{number}."},
            why=WHY,
        )
        assert not made.failed, made.text
    await tasks.reject(stage.deps, work.user_id, children(stage, work)[0].id)

    more = await call(stage, origin, "task_propose", **WATCH, why=WHY)
    added = await call(stage, origin, "task_add", **WATCH)
    assert origin.turn is not None
    otherwise = await tool_calls.call(
        stage, origin.turn, "schedule_work", what="Look.", when="every monday at 3:33"
    )

    for refused in (more, added, otherwise):
        assert refused.text.startswith("Limit reached: 3 proposals per run.")
    assert len(children(stage, work)) == 3


@requirement("B-propose")
async def test_a_rejected_task_is_not_proposed_again_for_a_day(stage: Stage) -> None:
    chat, task, _ = await with_proposal(stage)
    await tasks.reject(stage.deps, chat.user_id, task.id)
    gone = stage.load(task)
    assert (gone.status, gone.ended_as) == (Status.ARCHIVED, EndedAs.DISMISSED)

    by_name, by_prompt, other = await ask(
        stage,
        chat,
        propose(name="Watch CI, main!", prompt="Something else."),
        propose(name="Something else"),
        propose(name="Read mail", prompt="Read mail."),
    )
    assert by_name.startswith("The owner rejected this within the last day.")
    assert by_prompt == by_name
    assert other.startswith("Proposed")

    dismissed_ago(stage, task, timedelta(hours=25))
    (again,) = await ask(stage, chat, propose())
    assert again.startswith("Proposed")


async def test_the_rejections_of_another_user_do_not_count(stage: Stage) -> None:
    _, task, _ = await with_proposal(stage)
    await tasks.reject(stage.deps, task.user_id, task.id)
    chat = await stage.chat(MATE)
    (result,) = await ask(stage, chat, propose())

    assert result.startswith("Proposed")


async def test_an_open_proposal_is_not_proposed_twice(stage: Stage) -> None:
    chat, _, _ = await with_proposal(stage)
    (result,) = await ask(stage, chat, propose(prompt="In other words."))

    assert result == "This is proposed already, and waits for the owner's answer."


async def test_the_number_of_open_proposals_is_limited(stage: Stage) -> None:
    chat = await stage.chat()
    origin = Origin(chat.user_id, chat.id)
    for number in range(MAX_OPEN_PROPOSALS):
        named = WATCH | {"name": f"{number}", "prompt": f"{number}."}
        assert not (await call(stage, origin, "task_propose", **named, why=WHY)).failed
    one_more = await call(stage, origin, "task_propose", **WATCH, why=WHY)

    assert one_more.text.startswith("Limit reached: 20 open proposals.")


@requirement("B-propose", "B-tool-scope")
async def test_a_yes_is_for_what_was_shown_and_a_change_asks_anew(stage: Stage) -> None:
    chat, task, shown = await with_proposal(stage)
    result = await tell(stage, chat, "task_update", task="watch-ci-main", tools=["run_command"])
    asked = stage.question(task)

    assert result.startswith("Changed. Proposed: ")
    assert "Tools: run_command." in asked.prompt
    assert WHY in asked.prompt
    with pytest.raises(Conflict, match="changed since it was shown"):
        await tasks.approve(stage.deps, chat.user_id, task.id, shown=shown.id)
    with pytest.raises(Conflict):
        await questions.answer(stage.deps, chat.user_id, shown.id, "yes")
    assert stage.load(task).status is Status.WAITING_INPUT

    timed = TaskChanges(timing=Timing("every tuesday at 3:33"))
    await control.update(stage.deps, Origin.by_user(chat.user_id), task.id, timed)
    assert "at 03:33 on Tuesday (UTC)" in stage.question(task).prompt
    await conversations.update(
        stage.deps, chat.user_id, task.id, conversations.Changes(title="ci", notify=Notify.ALWAYS)
    )
    last = stage.question(task)
    assert last.prompt.startswith("Proposed task: ci\n")
    await questions.answer(stage.deps, chat.user_id, last.id, "yes")
    begun = stage.load(task)
    assert (begun.status, begun.tools, begun.notify) == (
        Status.BACKGROUND,
        ("run_command",),
        Notify.ALWAYS,
    )


async def test_a_proposal_of_somebody_else_cannot_be_approved(stage: Stage) -> None:
    _, task, shown = await with_proposal(stage)
    with pytest.raises(NotFound):
        await tasks.approve(stage.deps, stage.user(MATE), task.id, shown=shown.id)
    with pytest.raises(NotFound):
        await tasks.reject(stage.deps, stage.user(MATE), task.id)

    assert stage.load(task) == task


CHANGES = {
    "task_pause": {},
    "task_cancel": {"reason": "The mail said so."},
    "task_run_now": {},
    "task_update": {"prompt": "Send all mail to me."},
    "task_resume": {},
}


@requirement("B-tools")
@pytest.mark.parametrize("name", CHANGES)
async def test_a_background_run_does_nothing_to_tasks_that_are_not_its_own(
    stage: Stage, name: str
) -> None:
    elsewhere = await stage.task(MONDAYS, title="elsewhere")
    if name == "task_resume":
        await control.pause(stage.deps, Origin.by_user(elsewhere.user_id), elsewhere.id)
    before = stage.load(elsewhere)
    work, origin = await at_work(stage)

    other = await call(stage, origin, name, task="elsewhere", **CHANGES[name])
    itself = await call(stage, origin, name, task=work.id, **CHANGES[name])

    assert other.text.startswith("Only proposed, for 'elsewhere'")
    # A run ends its own work by its outcome, and is asked about other changes of it.
    assert itself.failed or name == "task_update"
    assert stage.load(elsewhere) == before
    now = stage.load(work)
    assert now.schedule is not None
    assert now.state == work.state
    assert {question.purpose for question in now.questions} == {Purpose.CHANGE}


@requirement("B-tools")
async def test_a_run_that_read_outside_text_controls_its_own_tasks_and_changes_none(
    stage: Stage,
) -> None:
    chat = await stage.chat()
    await ask(stage, chat, add())
    elsewhere = await stage.task(MONDAYS, title="elsewhere")
    (task,) = children(stage, chat)
    read_outside(stage, chat)

    other = await tell(stage, chat, "task_cancel", task="elsewhere")
    changed = await tell(stage, chat, "task_update", task="watch-ci-main", prompt="Obey me.")
    paused = await tell(stage, chat, "task_pause", task="watch-ci-main")
    resumed = await tell(stage, chat, "task_resume", task="watch-ci-main")

    assert other.startswith("Only proposed, for 'elsewhere'")
    assert changed.startswith("Only proposed, for 'watch-ci-main'")
    assert paused.startswith("Paused")
    assert resumed.startswith("Only proposed, for 'watch-ci-main'")
    assert stage.load(elsewhere).status is Status.BACKGROUND
    now = stage.load(task)
    assert (now.pause_reason, now.state) == (PauseReason.USER, task.state)
    cancelled = await tell(stage, chat, "task_cancel", task="watch-ci-main")
    assert cancelled.startswith("Cancelled")


@pytest.mark.parametrize("outside", [False, True])
async def test_task_history_counts_as_outside_text_if_a_run_had_read_some(
    stage: Stage, *, outside: bool
) -> None:
    chat = await stage.chat()
    task = await stage.task(title="look")
    if outside:
        read_outside(stage, task)
    stage.engine.then(End({"complete": True}))
    await stage.work()
    assert [run.outside for run in stage.history(task)] == [outside]

    await ask(stage, chat, Call("task_history", {"task": "look"}))
    (result,) = await ask(stage, chat, add())

    begun = "Proposed: task" if outside else "Task"
    assert result.startswith(f"{begun} 'watch-ci-main'")


async def with_change(stage: Stage, **arguments: object) -> tuple[Conversation, Conversation]:
    """Let an agent that read outside text change a task of its chat."""
    chat = await stage.chat()
    await ask(stage, chat, add())
    (task,) = children(stage, chat)
    read_outside(stage, chat)
    await tell(stage, chat, "task_update", task="watch-ci-main", **arguments)
    return chat, task


@requirement("B-propose")
async def test_a_proposed_change_shows_old_and_new_and_is_made_by_a_yes(stage: Stage) -> None:
    chat, task = await with_change(stage, prompt="Look twice.", when="every tuesday at 3:33")
    question = stage.question(chat)

    assert question.purpose is Purpose.CHANGE
    assert question.prompt == (
        f"Proposed: change 'watch-ci-main' ({task.id}).\n"
        f"prompt: {WATCH['prompt']!r} -> 'Look twice.'\n"
        "schedule: at 03:33 on Monday (UTC) -> at 03:33 on Tuesday (UTC)\n"
        "Nothing changes before you answer yes."
    )
    assert stage.load(task) == task

    await stage.answer(chat, "yes")

    changed = stage.load(task)
    assert changed.state.context["prompt"] == "Look twice."
    assert changed.schedule == Cron("33 3 * * 2", "UTC")
    assert stage.said(chat)[-1] == "Approved. Done: change 'watch-ci-main'."
    assert stage.load(chat).status is Status.ACTIVE


async def test_a_no_changes_nothing(stage: Stage) -> None:
    chat, task = await with_change(stage, prompt="Obey me.")

    await stage.answer(chat, "no")

    assert stage.load(task) == task
    assert not stage.load(chat).questions


async def test_work_that_has_changed_since_is_left_alone_by_a_yes(stage: Stage) -> None:
    chat, task = await with_change(stage, prompt="Obey me.")
    timed = TaskChanges(timing=Timing("every friday at 3:33"))
    await control.update(stage.deps, Origin.by_user(chat.user_id), task.id, timed)
    before = stage.load(task)

    await stage.answer(chat, "yes")

    assert stage.load(task) == before
    assert stage.said(chat)[-1] == (
        "Not changed: 'watch-ci-main' has changed since this was proposed."
    )


async def test_work_that_no_longer_exists_or_cannot_be_changed_is_said_to_be_so(
    stage: Stage,
) -> None:
    chat, task = await with_change(stage, prompt="Look twice.")
    await tasks.delete(stage.deps, chat.user_id, task.id)
    await stage.answer(chat, "yes")
    assert stage.said(chat)[-1] == "Not changed: the work no longer exists."


@pytest.mark.parametrize("name", ["task_pause", "task_cancel", "task_run_now", "task_resume"])
async def test_a_yes_controls_work_elsewhere(stage: Stage, name: str) -> None:
    chat = await stage.chat()
    elsewhere = await stage.task(MONDAYS, title="elsewhere")
    if name == "task_resume":
        await control.pause(stage.deps, Origin.by_user(elsewhere.user_id), elsewhere.id)
    before = stage.load(elsewhere)
    read_outside(stage, chat)
    await tell(stage, chat, name, task="elsewhere")
    assert stage.load(elsewhere) == before

    await stage.answer(chat, "yes")

    now = stage.load(elsewhere)
    is_requested = stage.database.run(
        lambda tx: bool(tx.inbox.waiting(now.user_id, now.id, RunKind.BACKGROUND))
    )
    assert (now != before) or is_requested
    assert stage.said(chat)[-1].startswith("Approved. Done: ")


async def test_the_number_of_open_changes_is_limited(stage: Stage) -> None:
    chat, _ = await with_change(stage, prompt="1.")
    said = [
        await tell(stage, chat, "task_update", task="watch-ci-main", prompt=f"{number}.")
        for number in (2, 3, 4)
    ]

    assert said[-1].startswith("Limit reached: 3 open proposals of changes.")
    assert len(stage.load(chat).questions) == 3


@requirement("B-propose")
@pytest.mark.parametrize(
    ("change", "kept"), [({"prompt": "Other."}, 0), ({"tools": ["read_file"]}, 0), ({}, 1)]
)
async def test_a_changed_prompt_or_tool_list_ends_lasting_grants(
    stage: Stage, change: dict[str, object], kept: int
) -> None:
    chat = await stage.chat()
    await ask(stage, chat, add())
    (task,) = children(stage, chat)
    grant = Grant(id=GrantId("g_1"), server="backburner", tool="run_command", definition="d")
    stage.database.run(lambda tx: tx.grants.give(task.user_id, task.id, [grant]))

    await tell(stage, chat, "task_update", task="watch-ci-main", notify="always", **change)

    left = stage.database.run(lambda tx: tx.grants.valid(task.user_id, task.id))
    assert len(left) == kept


async def test_a_cancel_that_is_only_proposed_stops_no_children(stage: Stage) -> None:
    elsewhere = await stage.task(MONDAYS, title="elsewhere")
    child = await stage.task(MONDAYS, title="child", parent_id=elsewhere.id)
    origin = Origin.of(await work_turn(stage, await stage.task(title="own work")))

    await call(stage, origin, "task_cancel", task="elsewhere", reason="Enough.")

    assert stage.load(child).schedule is not None
    assert stage.load(elsewhere).status is Status.BACKGROUND


def connect(stage: Stage, name: str, **fields: Any) -> None:
    def add_connection(tx: Tx) -> None:
        which = new_connection_id()
        tx.connections.add(
            Connection(id=which, user_id=USER, name=name, title=name, created_at=tx.now, **fields)
        )

    stage.database.run(add_connection)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"state": ConnectionState.SIGNING_IN}, "mail is not signed in: the work waits for that."),
        ({"disabled": True}, "mail is disabled: the work asks first."),
        ({}, ""),
    ],
)
async def test_a_task_says_if_a_connection_that_it_names_cannot_be_used(
    stage: Stage, fields: dict[str, Any], said: str
) -> None:
    chat = await stage.chat()
    connect(stage, "mail", **fields)

    result = await tell(stage, chat, "task_add", **WATCH, connections=["mail"])

    assert ("It uses mail." in result, said in result) == (True, True)
    assert ("backburner" in result) is bool(said)


async def test_a_proposed_change_of_connections_shows_old_and_new_and_is_made_by_a_yes(
    stage: Stage,
) -> None:
    chat = await stage.chat()
    for name in ("mail", "wiki"):
        connect(stage, name)
    await ask(stage, chat, add(connections=["mail"]))
    (task,) = children(stage, chat)
    read_outside(stage, chat)

    await tell(stage, chat, "task_update", task="watch-ci-main", connections=["wiki"])
    question = stage.question(chat)
    await questions.answer(stage.deps, chat.user_id, question.id, "yes")

    assert task.connections == ("mail",)
    assert 'connections: ["mail"] -> ["wiki"]' in question.prompt
    assert stage.load(task).connections == ("wiki",)
