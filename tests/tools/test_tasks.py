"""An agent creates, lists, changes and cancels tasks from a chat."""

from datetime import timedelta
from typing import Any

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End, Fail
from support.people.task_calls import WATCH, add, all_tasks, call, tell
from support.people.tool_calls import ask, children, set_up
from support.requirements import requirement
from support.stage.make import MATE
from support.stage.stage import Stage, prompts

from backburner.actions.origin import Origin
from backburner.actions.work import control
from backburner.core.conversation import (
    Author,
    Conversation,
    Destination,
    EndedAs,
    Kind,
    Notify,
    OnRepeatedFailure,
    PauseReason,
    Status,
)
from backburner.core.errors import EngineFailed
from backburner.core.ids import ConversationId
from backburner.core.routing import Routes
from backburner.core.schedule import Cron, Immediate, Interval
from backburner.store import tables
from backburner.store.db import Database
from backburner.worker.seats import Seats

MONDAYS = Cron("33 3 * * 1", "UTC")


async def with_task(stage: Stage, **changes: Any) -> tuple[Conversation, Conversation]:
    chat = await stage.chat()
    await ask(stage, chat, add(**changes))
    (task,) = children(stage, chat)
    return chat, task


@requirement("B-tools", "B-origin", "B-fields")
async def test_a_requested_task_is_created_and_described(stage: Stage) -> None:
    chat = await stage.chat()
    places = tables.conversations.update().values(reports_to='[["outside", "me"]]')
    stage.database.run(lambda tx: tx.connection.execute(places))
    result = await tell(
        stage, chat, "task_add", **WATCH, kind="scheduled", description="CI.", max_runs=30
    )

    (task,) = children(stage, chat)
    assert (task.kind, task.status, task.schedule) == (Kind.TASK, Status.BACKGROUND, MONDAYS)
    assert (task.title, task.max_runs, task.created_by) == ("watch-ci-main", 30, Author.USER)
    assert task.state.context == {"prompt": WATCH["prompt"], "description": "CI."}
    assert (task.notify, task.reports_to) == (Notify.ON_CHANGE, (Destination("outside", "me"),))
    begins = f"Task 'watch-ci-main' ({task.id}), at 03:33 on Monday (UTC). Next: Mon "
    assert result.startswith(begins)
    assert result.endswith(
        " UTC. It ends after 30 runs. It reports to the conversation that created it, outside me."
        " The user is notified of changed results. It is active."
    )
    # The chat itself has no work by that.
    assert stage.load(chat).schedule is None


async def test_a_task_pauses_after_repeated_failures_unless_told_otherwise(stage: Stage) -> None:
    chat = await stage.chat()
    usual = await tell(stage, chat, "task_add", **WATCH)
    lasting = await tell(
        stage, chat, "task_add", **(WATCH | {"name": "lasts"}), on_repeated_failure="notify"
    )
    tasks = {task.title: task for task in children(stage, chat)}

    assert tasks["watch-ci-main"].on_repeated_failure is OnRepeatedFailure.PAUSE
    assert tasks["lasts"].on_repeated_failure is OnRepeatedFailure.NOTIFY
    assert "failures" not in usual
    assert "It continues after repeated failures." in lasting

    changed = await tell(stage, chat, "task_update", task="lasts", on_repeated_failure="pause")
    kept = await tell(stage, chat, "task_update", task="watch-ci-main", on_repeated_failure=None)
    assert stage.load(tasks["lasts"]).on_repeated_failure is OnRepeatedFailure.PAUSE
    assert "failures" not in changed + kept


@requirement("B-tools", "B-kinds")
@pytest.mark.parametrize(
    ("time", "schedule"),
    [
        ({"kind": "scheduled", "interval": "30m"}, Interval),
        ({"interval": "every 2h"}, Interval),
        ({"kind": "oneshot"}, Immediate),
        ({"when": "*/5 * * * *"}, Cron),
    ],
)
async def test_a_task_has_a_time_of_any_kind(
    stage: Stage, time: dict[str, str], schedule: type
) -> None:
    chat = await stage.chat()
    turn_free = Origin(chat.user_id, chat.id)
    result = await call(stage, turn_free, "task_add", **(WATCH | {"when": None} | time))

    assert not result.failed, result.text
    (task,) = children(stage, chat)
    assert isinstance(task.schedule, schedule)


@requirement("B-memory-only")
async def test_a_run_of_a_task_is_told_its_own_brief_and_not_the_talk(stage: Stage) -> None:
    chat = await stage.chat()
    await stage.say(chat, "By the way, the cake is a surprise.")
    await stage.work()
    await ask(stage, chat, add(prompt="Look at the weather.", when="now"))

    (task,) = children(stage, chat)
    (prompt,) = prompts(stage.engine, task.id)
    assert "Look at the weather." in prompt
    assert "cake" not in prompt
    assert "Please." not in prompt
    assert stage.said(chat)[-1] == "watch-ci-main: Done."


@requirement("B-tools", "B-status")
async def test_tasks_from_all_conversations_are_listed_by_status(stage: Stage) -> None:
    chat, task = await with_task(stage)
    elsewhere = await stage.chat()
    await ask(stage, elsewhere, add(name="read-mail"))
    paused = await tell(stage, elsewhere, "task_pause", task="read-mail")
    (other,) = children(stage, elsewhere)

    everything = await tell(stage, chat, "task_list")
    active = await tell(stage, chat, "task_list", status="active")
    failed = await tell(stage, chat, "task_list", status="failed")

    assert paused == f"Paused: 'read-mail' ({other.id}). Use task_resume to resume it."
    line = f"'watch-ci-main' ({task.id}): active, at 03:33 on Monday (UTC). Next: "
    assert active.startswith(line)
    assert set(everything.splitlines()) == {
        active,
        f"'read-mail' ({other.id}): paused, at 03:33 on Monday (UTC).",
    }
    assert failed == "There are no tasks."


@requirement("B-tools", "B-run-now")
async def test_a_task_is_paused_resumed_run_and_has_a_history(stage: Stage) -> None:
    chat, task = await with_task(stage)
    await tell(stage, chat, "task_pause", task="watch-ci-main")
    assert stage.load(task).pause_reason is PauseReason.USER
    again = await tell(stage, chat, "task_pause", task="watch-ci-main")
    resumed = await tell(stage, chat, "task_resume", task=task.id[:12])
    assert (stage.load(task).pause_reason, stage.load(task).status) == (None, Status.BACKGROUND)

    # One at a time: the requested run begins after both requests.
    stage.claiming.seats = Seats(total=1)
    stage.engine.then(
        Call("task_run_now", {"task": "watch-ci-main"}),
        Call("task_run_now", {"task": "watch-ci-main"}),
    )
    stage.engine.then(End({"complete": True, "result": "green"}))
    await stage.say(chat, "Now.")
    await stage.work()
    assert stage.load(task).run_count == 1
    stage.engine.then(Call("task_run_now", {"task": "watch-ci-main"}))
    stage.engine.then(Fail(EngineFailed("Broken.")))
    await stage.say(chat, "Again.")
    await stage.work()
    result = await tell(stage, chat, "task_history", task="watch-ci-main")

    assert again == "This work is already paused. Resume it to continue."
    assert resumed.startswith("Resumed. Task 'watch-ci-main'")
    first, newest, oldest = result.splitlines()
    assert first == f"Task 'watch-ci-main' ({task.id}), run 2 times."
    assert "UTC: background failure, 0 tokens. Error (model): Broken." in newest
    assert "UTC: background success, 0 tokens. Result: green" in oldest


async def test_the_history_of_a_task_says_why_slots_were_skipped(
    stage: Stage, clock: SetClock
) -> None:
    chat, task = await with_task(stage)
    clock.advance(timedelta(weeks=3))
    await stage.work()

    result = await tell(stage, chat, "task_history", task="watch-ci-main")

    assert stage.load(task).run_count == 1
    skipped = [line for line in result.splitlines() if "skipped" in line]
    assert [line.partition("UTC: ")[2] for line in skipped] == [
        "skipped: machine off or busy, or model unavailable (2 times)."
    ]


async def test_a_task_that_is_paused_for_failures_says_so(stage: Stage, clock: SetClock) -> None:
    chat, task = await with_task(stage)
    for _ in range(2):
        await control.run_now(stage.deps, Origin.by_user(task.user_id), task.id)
        stage.engine.then(Fail(EngineFailed("Broken.")))
        await stage.work()
        clock.advance(timedelta(hours=1))

    listed = await tell(stage, chat, "task_list", status="paused")
    failed = await tell(stage, chat, "task_list", status="failed")
    mine = await tell(stage, chat, "list_work")

    assert listed.startswith(f"'watch-ci-main' ({task.id}): paused after repeated failures, ")
    assert failed == "There are no tasks."
    assert "Paused after repeated failures." in mine


@requirement("B-tools")
async def test_a_task_is_changed_in_every_part(stage: Stage) -> None:
    chat, task = await with_task(stage)
    result = await tell(
        stage,
        chat,
        "task_update",
        task="watch-ci-main",
        name="watch-ci",
        prompt="Look at CI.",
        description="For us.",
        interval="1d",
        notify="always",
        max_runs=9,
        timeout="2h",
        tools=["run_command"],
    )

    now = stage.load(task)
    assert (now.title, now.notify, now.max_runs) == ("watch-ci", Notify.ALWAYS, 9)
    assert now.state.context == {"prompt": "Look at CI.", "description": "For us."}
    assert isinstance(now.schedule, Interval)
    assert now.schedule.every == timedelta(days=1)
    assert (now.tools, now.run_timeout) == (("run_command",), timedelta(hours=2))
    assert "A run may take up to 2 hours." in result
    assert result.startswith(f"Changed. Task 'watch-ci' ({task.id}), every 24 hours.")
    # Its next time is now, so it ran, and what it said has been read here.
    fresh = await stage.chat()
    await tell(stage, fresh, "task_update", task="watch-ci", max_runs=0)
    assert stage.load(task).max_runs is None


@requirement("B-tools")
async def test_a_cancelled_task_is_archived_with_the_given_reason(stage: Stage) -> None:
    chat, task = await with_task(stage)
    result = await tell(stage, chat, "task_cancel", task="watch-ci", reason="It was merged.")

    gone = stage.load(task)
    assert result == f"Cancelled: 'watch-ci-main' ({task.id})."
    assert (gone.status, gone.ended_as, gone.schedule) == (
        Status.ARCHIVED,
        EndedAs.CANCELLED,
        None,
    )
    assert stage.said(task) == ["It was cancelled: It was merged."]
    assert await tell(stage, chat, "task_list") == "There are no tasks."
    done = await tell(stage, chat, "task_list", status="done")
    assert done.startswith(f"'watch-ci-main' ({task.id}): done, not scheduled.")
    assert "is archived" in await tell(stage, chat, "task_cancel", task="watch-ci-main")


async def test_cancelling_the_work_of_a_chat_leaves_the_chat_open(stage: Stage) -> None:
    chat = await stage.chat()
    await ask(stage, chat, Call("schedule_work", {"what": "Look.", "when": "every monday at 3:33"}))
    listed = await tell(stage, chat, "task_list")
    result = await tell(stage, chat, "task_cancel", task="this", reason="Enough.")

    assert f"({chat.id}): active" in listed
    assert result.startswith("Cancelled: ")
    now = stage.load(chat)
    assert (now.status, now.ended_as) == (Status.ACTIVE, EndedAs.CANCELLED)
    assert "It was cancelled: Enough." in stage.said(chat)


async def test_a_name_that_fits_several_or_none_is_refused_with_what_there_is(
    stage: Stage,
) -> None:
    chat, _ = await with_task(stage)
    await ask(stage, chat, add(name="watch-deploy"))
    await stage.task(MONDAYS, user=MATE, title="theirs")

    both = await tell(stage, chat, "task_pause", task="watch")
    none = await tell(stage, chat, "task_pause", task="theirs")
    beginning = await tell(stage, chat, "task_pause", task="c_")

    first, second = all_tasks(stage)[1:]
    assert f"'watch-ci-main' ({first.id})" in both
    assert f"'watch-deploy' ({second.id})" in both
    assert none == "There is no task called 'theirs'. List the tasks to see their names."
    assert "no task called" in beginning
    assert all(task.pause_reason is None for task in all_tasks(stage))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"kind": "oneshot"}, ", not oneshot."),
        (
            {"kind": "scheduled", "when": "in 2h"},
            "makes a task of kind oneshot, not scheduled.",
        ),
        ({"interval": "30m"}, "There is more than one schedule."),
        ({"when": None}, "The schedule is missing. Give one of `when`, `interval`,"),
        ({"when": None, "interval": "soon"}, "'soon' is not a duration."),
        ({"when": "soon"}, "'soon' is not a schedule."),
        ({"name": " "}, "Work needs a name and a prompt."),
        ({"name": ""}, "task_add was not called. name:"),
        ({"prompt": " "}, "Work needs a name and a prompt."),
        ({"max_runs": 0}, "task_add was not called. max_runs:"),
        ({"timeout": "2d"}, "The timeout cannot be 48 hours. Use 10 seconds to 24 hours."),
        ({"timeout": "long"}, "'long' is not a duration."),
        ({"when": None, "after": "nothing"}, "There is no task called 'nothing'."),
        (
            {"agent": "genius"},
            "There is no agent 'genius'. Available: general, researcher, coder, scripted.",
        ),
        (
            {"agent": "researcher", "tools": ["read_file", "write_file"]},
            "The agent 'researcher' may not use write_file. It may use: read_file,",
        ),
    ],
)
async def test_an_invalid_task_is_refused_and_leaves_nothing(
    database: Database, arguments: dict[str, Any], said: str
) -> None:
    stage = set_up(database, routes=Routes(names=("scripted",), chat="scripted"))
    chat = await stage.chat()
    (result,) = await ask(stage, chat, add(**arguments))

    assert said in result
    assert stage.engine.results[-1].failed
    assert all_tasks(stage) == []


async def test_a_task_may_use_no_more_tools_than_its_creator(stage: Stage) -> None:
    chat = await stage.chat()
    restrict = tables.conversations.update().values(tools='["task_add", "task_update", "look"]')
    stage.database.run(lambda tx: tx.connection.execute(restrict))
    refused, narrow, same = await ask(
        stage, chat, add(tools=["run_command"]), add(name="b", tools=["look"]), add(name="c")
    )

    assert "This conversation may not use run_command itself." in refused
    assert narrow.startswith("Task 'b'")
    assert same.startswith("Task 'c'")
    assert [task.tools for task in all_tasks(stage)] == [
        ("look",),
        ("task_add", "task_update", "look"),
    ]
    widened = await tell(stage, chat, "task_update", task="b", tools=["look", "run_command"])
    assert "may not use run_command" in widened


async def test_a_client_of_the_owner_sets_up_tasks_that_begin(stage: Stage) -> None:
    chat = await stage.chat()
    result = await call(stage, Origin(chat.user_id, chat.id), "task_add", **WATCH)

    assert "It is active." in result.text
    stranger = await call(stage, Origin(stage.user(MATE), chat.id), "task_add", **WATCH)
    assert stranger.failed
    nowhere = Origin(chat.user_id, ConversationId("c_nothing"))
    assert (await call(stage, nowhere, "task_add", **WATCH)).failed
    assert len(all_tasks(stage)) == 1
