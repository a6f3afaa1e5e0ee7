"""Jobs: started, finished, failed, cancelled, looked at and cleared away."""

from dataclasses import replace

import pytest
from sqlalchemy import func, select
from support.doubles.engine import Say
from support.requirements import requirement
from support.stage.job_stage import House, hand_out, outside, started
from support.stage.make import MATE, USER

from backburner.actions import conversations
from backburner.actions.origin import Origin
from backburner.actions.work import control, jobs
from backburner.actions.work.jobs import JobRequest
from backburner.core.conversation import Author, Destination, Kind, Status
from backburner.core.errors import BadRequest, Conflict, LimitReached, NotFound
from backburner.core.notice import NoticeKind
from backburner.core.routing import Routes
from backburner.core.run import RunStatus
from backburner.core.schedule import Cron
from backburner.core.transitions import Step
from backburner.core.work.jobs import MAX_OPEN_JOBS
from backburner.core.work.views import JobStatus
from backburner.store import tables


@requirement("C-launch", "C-resume-count")
async def test_a_job_is_there_at_once_and_says_where_it_was_asked_for(house: House) -> None:
    chat = await house.chat()
    await house.ask(chat, lambda _: [*hand_out("say Hello."), Say("It runs.")])

    (which,) = started(house.results())
    job = await house.job(chat, which)
    made = house.database.run(lambda tx: tx.conversations.load(chat.user_id, job.id))
    (asked, *_) = house.messages(chat)
    (*_, reply) = house.history(chat)
    assert (made.kind, made.created_by, made.root_id) == (Kind.JOB, Author.AGENT, chat.id)
    assert (job.description, job.prompt, job.parent_id) == ("say Hello.", "say Hello.", chat.id)
    assert (job.parent_run_id, job.parent_message_id) == (reply.id, asked.id)
    assert (job.resume_count, job.batch is None) == (0, False)


@requirement("C-launch")
async def test_starting_returns_before_anything_is_done(house: House) -> None:
    chat = await house.chat()

    (job,) = await jobs.start(
        house.deps, outside(chat), [JobRequest(description="One", prompt="hang")]
    )

    assert (job.status, job.result, job.completed_at) == (JobStatus.RUNNING, None, None)
    assert (job.parent_run_id, job.parent_message_id) == (None, None)
    assert house.engine.requests == []


@requirement("C-launch")
async def test_an_agent_that_there_is_none_of_is_refused_with_those_there_are(
    house: House,
) -> None:
    routes = Routes(names=("scripted", "local"), chat="scripted", background="local")
    house.deps = replace(house.deps, routes=routes)
    chat = await house.chat()
    wish = JobRequest(description="One", prompt="say Hello.")

    with pytest.raises(
        BadRequest, match=r"no agent 'other'. Available: general, .*, scripted, local"
    ):
        await jobs.start(house.deps, outside(chat), [replace(wish, agent="other")])
    (named,) = await jobs.start(house.deps, outside(chat), [replace(wish, agent="scripted")])
    (routed,) = await jobs.start(house.deps, outside(chat), [wish])

    made = house.database.run(lambda tx: tx.jobs.load(chat.user_id, [named.id, routed.id]))
    assert (made[named.id].profile, made[routed.id].profile) == ("scripted", "local")


async def test_a_job_may_do_no_more_than_what_handed_it_out(house: House) -> None:
    chat = await house.chat()
    place = Destination("outside", "me")
    here = replace(house.load(chat), tools=("background_task",), reports_to=(place,))
    here = replace(here, outside_read=True)
    house.database.run(lambda tx: tx.conversations.save(Step(conversation=here)))

    (which,) = await house.start(chat, "say Hello.")

    job = house.database.run(lambda tx: tx.conversations.load(chat.user_id, which))
    assert (job.tools, job.reports_to, job.outside_read) == (here.tools, (place,), True)


async def test_jobs_of_jobs_hand_out_no_more_and_there_is_an_end_to_their_number(
    house: House,
) -> None:
    chat = await house.chat()
    (first,) = await house.start(chat, "hang")
    job = house.database.run(lambda tx: tx.conversations.load(chat.user_id, first))
    (second,) = await house.start(job, "hang")
    below = house.database.run(lambda tx: tx.conversations.load(chat.user_id, second))

    with pytest.raises(LimitReached, match="cannot start jobs"):
        await house.start(below, "hang")
    await house.start(chat, *["hang"] * (MAX_OPEN_JOBS - 2))
    for full in (chat, job):
        with pytest.raises(LimitReached, match="64 are open now"):
            await house.start(full, "hang")
    await jobs.cancel(house.deps, outside(chat), ids=[first])
    assert len(await house.start(chat, "hang")) == 1
    house.database.run(
        lambda tx: tx.conversations.save(Step(conversation=replace(chat, status=Status.ARCHIVED)))
    )
    with pytest.raises(Conflict, match="archived"):
        await house.start(chat, "hang")


@requirement("C-completed", "C-output")
async def test_a_finished_job_has_its_time_and_its_result_which_can_be_fetched(
    house: House,
) -> None:
    chat = await house.chat()
    (which, silent) = await house.start(chat, "find gold", "nothing to say")
    await house.work()

    job = await house.job(chat, which)
    assert (job.status, job.result, job.data) == (
        JobStatus.COMPLETED,
        "Found gold.",
        {"it": "gold"},
    )
    assert (job.completed_at is None, job.retrieved_at) == (False, None)
    (fetched,) = (await jobs.fetch(house.deps, outside(chat), [which[:12]])).jobs
    assert fetched.result == "Found gold."
    assert fetched.retrieved_at is not None
    (again,) = (await jobs.fetch(house.deps, outside(chat), [which])).jobs
    assert again.retrieved_at == fetched.retrieved_at
    assert (await house.job(chat, silent)).result == "It is done."


@requirement("C-error")
async def test_a_job_that_fails_keeps_what_went_wrong(house: House) -> None:
    chat = await house.chat()
    (which,) = await house.start(chat, "fail The model is on fire.")
    await house.work()

    job = await house.job(chat, which)
    assert (job.status, job.result) == (JobStatus.ERROR, None)
    assert job.error == "The model is on fire."
    assert "The model is on fire." in house.prompts(chat)[-1]
    assert "has failed" in house.prompts(chat)[-1]


@requirement("C-output", "C-progress")
async def test_of_a_running_job_its_progress_is_told_without_waiting(house: House) -> None:
    chat = await house.chat()
    (which,) = await house.start(chat, "look around")
    before = await house.job(chat, which)
    await house.take_up()
    await house.looked.wait()

    (job,) = (await jobs.fetch(house.deps, outside(chat), [which])).jobs
    assert (before.calls, before.recent_tools) == (0, ())
    assert (job.status, job.retrieved_at) == (JobStatus.RUNNING, None)
    assert (job.calls, set(job.recent_tools)) == (2, {"background_list", "list_work"})
    last_call = select(func.max(tables.tool_calls.c.started_at))
    called_at = house.database.run(lambda tx: tx.connection.execute(last_call).scalar_one())
    # On PostgreSQL, whose clock goes on, the call comes after the start.
    assert job.updated_at >= called_at >= before.updated_at
    house.kill()


@requirement("C-cancel")
async def test_cancelling_ends_what_runs_and_what_that_handed_out(house: House) -> None:
    chat = await house.chat()
    (which,) = await house.start(chat, "hang")
    job = house.database.run(lambda tx: tx.conversations.load(chat.user_id, which))
    (below,) = await house.start(job, "hang")
    await house.take_up()

    changed = await jobs.cancel(house.deps, outside(chat), ids=[which])
    await house.renew()
    await house.idle()

    assert [one.id for one in changed.done] == [which]
    for parent, child in ((chat, which), (job, below)):
        view = await house.job(parent, child)
        assert (view.status, view.completed_at is None) == (JobStatus.CANCELLED, False)
    assert [run.status for run in house.history(job)] == [RunStatus.CANCELLED]
    assert house.engine.underway == 0
    # Its parent did it, and is not told.
    assert house.items(chat) == []


@requirement("C-list", "C-batch", "C-cancel")
async def test_jobs_of_a_batch_are_listed_and_cancelled_together(house: House) -> None:
    chat = await house.chat()
    (one, two) = await house.start(chat, "hang", "hang")
    (three, done) = await house.start(chat, "hang", "say Hello.", batch="mine")
    await house.take_up()
    await house.renew()

    together = await house.job(chat, one)
    mine = await jobs.list_jobs(house.deps, outside(chat), batch="mine")
    assert {job.id for job in mine.jobs} == {three, done}
    assert together.batch == (await house.job(chat, two)).batch != "mine"
    await house.until_settled(chat, done)
    changed = await jobs.cancel(house.deps, outside(chat), ids=["c_nowhere"], batch="mine")
    assert (changed.done, changed.unknown) == ([], ["c_nowhere"])
    changed = await jobs.cancel(house.deps, outside(chat), batch="mine")
    assert [job.id for job in changed.done] == [three]
    assert [(job.id, job.status) for job in changed.left] == [(done, JobStatus.COMPLETED)]
    running = await jobs.list_jobs(house.deps, outside(chat), status=JobStatus.RUNNING)
    assert {job.id for job in running.jobs} == {one, two}
    with pytest.raises(BadRequest, match="no jobs to cancel"):
        await jobs.cancel(house.deps, outside(chat))
    house.kill()


@requirement("C-batch")
async def test_what_is_started_in_one_run_is_one_batch(house: House) -> None:
    chat = await house.chat()
    await house.ask(chat, lambda _: hand_out("say One.", "say Two."))
    await house.ask(chat, lambda _: hand_out("say Three."))

    found = (await jobs.list_jobs(house.deps, outside(chat))).jobs
    batches = {job.description: job.batch for job in found}
    assert batches["say One."] == batches["say Two."] != batches["say Three."]


@requirement("C-list")
async def test_unknown_ids_are_named_and_the_others_served(house: House) -> None:
    chat, other = await house.chat(), await house.chat()
    (which,) = await house.start(chat, "say Hello.")
    (hidden,) = await house.start(other, "say Hello.")

    found = await jobs.list_jobs(
        house.deps, outside(chat), ids=[which, hidden, "c_", "nonsense", " "]
    )

    assert [job.id for job in found.jobs] == [which]
    assert found.unknown == [hidden, "nonsense"]
    await house.start(chat, "say Hello.")
    found = await jobs.list_jobs(house.deps, outside(chat), ids=["c_"])
    assert (found.jobs, found.unknown) == ([], ["c_ (matches several)"])


async def test_nobody_reaches_the_jobs_of_somebody_else(house: House) -> None:
    chat = await house.chat()
    (which,) = await house.start(chat, "say Hello.")
    stranger = replace(outside(chat), user=house.user(MATE))

    assert (await jobs.list_jobs(house.deps, stranger)).jobs == []
    assert (await jobs.fetch(house.deps, stranger, [which])).unknown == [which]
    with pytest.raises(NotFound):
        await jobs.start(house.deps, stranger, [JobRequest(description="One", prompt="hang")])
    with pytest.raises(NotFound):
        await jobs.cancel(house.deps, stranger, ids=[which])
    with pytest.raises(NotFound):
        await jobs.resume(house.deps, stranger, which, "More.")


@requirement("C-persist")
async def test_a_job_stays_until_it_is_cleared_and_only_ended_ones_are(house: House) -> None:
    chat = await house.chat()
    (done, running) = await house.start(chat, "say Hello.", "ask somebody")
    await house.work()

    changed = await jobs.clear(house.deps, outside(chat))

    assert [job.id for job in changed.done] == [done]
    assert [job.id for job in changed.left] == [running]
    found = await jobs.list_jobs(house.deps, outside(chat), ids=[done, running])
    assert ([job.id for job in found.jobs], found.unknown) == ([running], [done])


@requirement("C-persist")
async def test_archiving_a_parent_cancels_what_runs_keeps_results_and_says_so(
    house: House,
) -> None:
    chat = await house.chat()
    (done, running) = await house.start(chat, "say Hello.", "hang")
    await house.take_up()
    await house.until_settled(chat, done)
    # The reply to the result has to end first: one that is archived says that it was stopped.
    await house.take_up()
    await house.until(lambda: house.said(chat)[-1] == "I see.")

    await conversations.archive(house.deps, chat.user_id, chat.id)
    await house.renew()
    await house.idle()

    assert (await house.job(chat, running)).status is JobStatus.CANCELLED
    assert (await house.job(chat, done)).result == "Hello."
    assert house.said(chat)[-1] == (
        "Archived. Its tasks and jobs were cancelled: 'hang'. Results are kept."
    )
    assert house.engine.underway == 0


@requirement("C-persist")
async def test_deleting_a_parent_ends_and_removes_its_jobs(house: House) -> None:
    chat = await house.chat()
    (which,) = await house.start(chat, "hang")
    await house.take_up()
    await house.engine.began.wait()

    await conversations.delete(house.deps, chat.user_id, chat.id)
    await house.renew()
    await house.idle()

    assert house.engine.underway == 0
    with pytest.raises(NotFound):
        house.database.run(lambda tx: tx.conversations.load(chat.user_id, which))


async def test_what_a_job_asks_reaches_the_user_with_its_name(house: House) -> None:
    chat = await house.chat()
    (which,) = await house.start(chat, "ask somebody")
    await house.work()

    job = await house.job(chat, which)
    assert (job.status, job.needs_you, job.question) == (JobStatus.RUNNING, True, "Which one?")
    (told,) = house.database.run(
        lambda tx: tx.browse.notices(chat.user_id, None, unseen=True, limit=9)
    )
    assert (told.kind, told.title, told.text) == (NoticeKind.QUESTION, "ask somebody", "Which one?")
    assert told.message == "I cannot go on."
    (asked,) = house.database.run(lambda tx: tx.browse.questions(chat.user_id, None, limit=9))
    assert (asked.conversation_id, asked.title) == (which, "ask somebody")


async def test_no_batch_is_called_as_tests_of_tasks_are(house: House) -> None:
    chat = await house.chat()

    with pytest.raises(BadRequest, match="is reserved"):
        await house.start(chat, "say Hello.", batch=" test run ")

    assert (await jobs.list_jobs(house.deps, outside(chat))).jobs == []


async def test_all_that_a_task_handed_out_ends_with_it_however_far_down(house: House) -> None:
    task = await house.task(Cron("33 3 * * 1", "UTC"))
    (child,) = await house.start(task, "hang")
    parent = house.database.run(lambda tx: tx.conversations.load(USER, child))
    (grandchild,) = await house.start(parent, "hang")

    await control.cancel_and_archive(house.deps, Origin.by_user(USER), task.id)

    found = [await house.job(task, child), await house.job(parent, grandchild)]
    assert [job.status for job in found] == [JobStatus.CANCELLED] * 2
