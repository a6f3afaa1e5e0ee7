"""Runs that take long: they keep their turn, say what they do, and survive what happens to them."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End, ScriptedEngine, Wait
from support.requirements import requirement
from support.stage.make import USER
from support.stage.stage import Stage
from support.stage.until import until

from backburner.actions.origin import Origin
from backburner.actions.work import jobs, user_jobs
from backburner.actions.work.jobs import JobRequest
from backburner.actions.work.progress import REPORT_INTERVAL
from backburner.bus.local import LocalBus
from backburner.core.conversation import Conversation, EndedAs
from backburner.core.ids import ConversationId
from backburner.core.run import FailureKind, RunStatus
from backburner.core.work.views import JobStatus, JobView
from backburner.ports import EventKind
from backburner.runs.stopping import StopReason
from backburner.store.db import Database
from backburner.tools.toolbox import Toolbox

TOO_SOON = (
    f"Not stored: progress is reported once in {REPORT_INTERVAL.seconds} seconds."
    " Continue with the work, and report later."
)
BEAT, MINUTE = timedelta(seconds=10), timedelta(minutes=1)


def make_stage(database: Database) -> Stage:
    return Stage(database, LocalBus(), ScriptedEngine(), toolbox=Toolbox)


@pytest.fixture
def stage(database: Database) -> Stage:
    return make_stage(database)


async def start_job(stage: Stage, within: timedelta | None = None) -> Conversation:
    chat = await stage.chat()
    request = JobRequest(description="Long", prompt="Read every file.", timeout=within)
    (job,) = await jobs.start(stage.deps, Origin(chat.user_id, chat.id), [request])
    return load(stage, job.id)


def load(stage: Stage, job: ConversationId) -> Conversation:
    return stage.database.run(lambda tx: tx.conversations.load(USER, job))


async def look(stage: Stage, job: Conversation) -> JobView:
    return await user_jobs.show(stage.deps, USER, job.id)


def report(text: str) -> Call:
    return Call("report_progress", {"text": text})


async def work_for(stage: Stage, clock: SetClock, length: timedelta) -> None:
    """Pass time with heartbeats, while somebody looks for turns to rescue."""
    for _ in range(length // BEAT):
        clock.advance(BEAT)
        await stage.renew()
        assert not await stage.rescuer.run_once()


@requirement("C-long")
async def test_a_job_of_twelve_minutes_is_handed_back_killed_and_cancelled(
    stage: Stage, clock: SetClock
) -> None:
    stage.engine.then(report("Read 10 files"), Call("list_work"), Wait())
    job = await start_job(stage, 20 * MINUTE)
    await stage.take_up()
    await until(lambda: len(stage.engine.results) == 2)
    await work_for(stage, clock, 12 * MINUTE)

    view = await look(stage, job)
    assert (view.status, view.timeout) == (JobStatus.RUNNING, 20 * MINUTE)
    assert view.progress is not None
    assert view.progress.text == "Read 10 files"
    assert view.recent_tools == ("list_work",)

    # The process is asked to stop, and another one goes on in the same run and session.
    stage.only_run().stop.request(StopReason.DRAINING)
    await stage.idle()
    stage.engine.then(report("Read 20 files"), Wait())
    await stage.take_up()
    await until(lambda: len(stage.engine.results) == 3)
    (run,) = stage.history(job)
    assert (run.status, stage.engine.requests[1].session_id) == (RunStatus.RUNNING, "session-1")
    await work_for(stage, clock, 12 * MINUTE)

    # The process is killed, and the work begins again in a run of its own.
    stage.kill()
    clock.advance(MINUTE)
    await stage.rescuer.run_once()
    stage.engine.then(Wait())
    await stage.take_up()
    await until(lambda: len(stage.engine.requests) == 3)
    again, crashed = stage.history(job)
    assert crashed.failure is not None
    assert crashed.failure.kind is FailureKind.CRASHED
    assert (again.status, (await look(stage, job)).progress) == (RunStatus.RUNNING, None)
    await work_for(stage, clock, 12 * MINUTE)

    await user_jobs.cancel(stage.deps, USER, job.id)
    await stage.renew()
    await stage.idle()
    assert stage.history(job)[0].status is RunStatus.CANCELLED
    assert load(stage, job.id).ended_as is EndedAs.CANCELLED


@requirement("C-long")
async def test_a_job_has_longer_than_a_task(
    set_up: Callable[..., Stage],
) -> None:
    stage = set_up([Wait(goes_on := asyncio.Event())], [Wait()])
    limits = replace(stage.deps.limits, run_timeout=timedelta(milliseconds=50))
    stage.claiming.deps = stage.deps = replace(stage.deps, limits=limits)
    job, task = await start_job(stage), await stage.task()
    await stage.take_up()
    await until(lambda: stage.history(task) and stage.history(task)[0].failure)
    goes_on.set()
    await stage.idle()

    assert load(stage, job.id).ended_as is EndedAs.COMPLETED


@requirement("C-long", "C-progress")
async def test_progress_is_announced_limited_and_shown_while_it_works(
    either: Database,
) -> None:
    stage = make_stage(either)
    soon = [report(" Read\n10 files "), report("Read 11 files"), report(" ")]
    stage.engine.then(*soon, Wait(goes_on := asyncio.Event()), End({"complete": True}))
    job = await start_job(stage)
    before = either.run(lambda tx: tx.events.latest(USER))
    await stage.take_up()
    await until(lambda: len(stage.engine.results) == 3)

    shown = (await look(stage, job)).progress
    assert shown is not None
    assert shown.text == "Read 10 files"
    assert [result.text for result in stage.engine.results] == [
        "Shown.",
        TOO_SOON,
        "The text is empty. Say in a sentence what you are doing.",
    ]
    changes = either.run(lambda tx: tx.events.after(USER, before, limit=20))
    told = [one for one in changes if one.conversation == job.id and one.kind == EventKind.RUN]
    assert len(told) == 2
    goes_on.set()
    await stage.idle()
    assert (await look(stage, job)).progress is None


async def test_only_a_background_run_reports_progress(stage: Stage) -> None:
    chat = await stage.chat()
    await stage.say(chat, "Hello?")
    await stage.task()
    await stage.work()

    offered = {
        request.kind.value: "report_progress" in [offer.tool.name for offer in request.tools]
        for request in stage.engine.requests
    }
    assert offered == {"reply": False, "background": True}
