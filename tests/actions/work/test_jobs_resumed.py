"""A completed job is asked for something more, where its agent remembers what it did."""

from dataclasses import replace

import pytest
from sqlalchemy import delete
from support.doubles.engine import Call, Fail, Say
from support.requirements import requirement
from support.stage.job_stage import House, outside

from backburner.actions.work import jobs
from backburner.core.conversation import Conversation, Session
from backburner.core.errors import BadRequest, Conflict, NotFound, SessionGone
from backburner.core.ids import ConversationId
from backburner.core.transitions import Step
from backburner.core.work.views import JobStatus
from backburner.store import tables


async def finished(house: House) -> tuple[Conversation, ConversationId]:
    """Have a job that said hello, and a parent that was told."""
    chat = await house.chat()
    (which,) = await house.start(chat, "say Hello.")
    await house.work()
    return chat, which


@requirement("C-resume", "C-resumed", "C-resume-count")
async def test_a_completed_job_is_resumed_in_its_own_session_and_its_parent_is_told(
    house: House,
) -> None:
    chat, which = await finished(house)
    first = house.engine.requests[0]

    job = await jobs.resume(house.deps, outside(chat), which, "say Good night.")

    assert (job.status, job.resume_count, job.completed_at) == (JobStatus.RESUMED, 1, None)
    assert (await house.job(chat, which)).status is JobStatus.RESUMED
    await house.work()
    again = next(one for one in house.engine.requests[1:] if one.conversation.id == which)
    assert again.session_id == "session-1"
    assert f"asked: {first.prompt}" in again.memory
    done = await house.job(chat, which)
    assert (done.status, done.result, done.resume_count) == (JobStatus.COMPLETED, "Good night.", 1)
    assert "Good night." in house.prompts(chat)[-1]
    await jobs.resume(house.deps, outside(chat), which, "say Bye.")
    assert (await house.job(chat, which)).resume_count == 2


@requirement("C-resume")
async def test_what_it_remembers_is_not_too_long_for_a_follow_up(house: House) -> None:
    house.engine.tokens = house.deps.limits.background_context + 1
    chat, which = await finished(house)

    await jobs.resume(house.deps, outside(chat), which, "say Good night.")
    await house.work()

    again = [one for one in house.engine.requests if one.conversation.id == which][-1]
    assert again.session_id == "session-1"


@requirement("C-resume-only-completed")
@pytest.mark.parametrize(
    ("prompt", "status"),
    [("hang", "running"), ("fail It broke.", "error"), ("ask somebody", "running")],
)
async def test_only_a_completed_job_can_be_resumed(house: House, prompt: str, status: str) -> None:
    chat = await house.chat()
    (which,) = await house.start(chat, prompt)
    if prompt != "hang":
        await house.work()

    with pytest.raises(Conflict, match=f"Only a completed job can be resumed.* {status}"):
        await jobs.resume(house.deps, outside(chat), which, "say More.")
    await jobs.cancel(house.deps, outside(chat), ids=[which])
    with pytest.raises(Conflict, match=r"Only a completed job can be resumed.*Start a new one"):
        await jobs.resume(house.deps, outside(chat), which, "say More.")


async def test_a_follow_up_says_something_to_a_job_that_is_there(house: House) -> None:
    chat, which = await finished(house)

    with pytest.raises(BadRequest, match="empty"):
        await jobs.resume(house.deps, outside(chat), which, " ")
    with pytest.raises(NotFound, match="There is no such job: c_nowhere"):
        await jobs.resume(house.deps, outside(chat), "c_nowhere", "say More.")


@requirement("C-resume-concurrent")
async def test_a_job_that_is_being_resumed_cannot_be_resumed_again(house: House) -> None:
    chat, which = await finished(house)
    await jobs.resume(house.deps, outside(chat), which, "say Good night.")

    with pytest.raises(Conflict, match="already been resumed"):
        await jobs.resume(house.deps, outside(chat), which, "say Good night.")
    assert (await house.job(chat, which)).resume_count == 1


@requirement("C-resume-expired")
@pytest.mark.parametrize("lost", ["session", "entries", "engine", "too long"])
async def test_a_job_whose_session_is_gone_is_not_resumed_and_a_new_one_suggested(
    house: House, lost: str
) -> None:
    chat, which = await finished(house)
    job = house.database.run(lambda tx: tx.conversations.load(chat.user_id, which))
    changed = {
        "session": replace(job, session=None),
        "entries": job,
        "engine": replace(job, session=Session("another", "session-1")),
        "too long": replace(job, session=Session("scripted", "session-1", 1_000_000)),
    }
    house.database.run(lambda tx: tx.conversations.save(Step(conversation=changed[lost])))
    if lost == "entries":
        house.database.run(lambda tx: tx.connection.execute(delete(tables.session_entries)))

    with pytest.raises(Conflict, match=r"no longer remembers this job.*new job"):
        await jobs.resume(house.deps, outside(chat), which, "say Good night.")
    assert (await house.job(chat, which)).status is JobStatus.COMPLETED


@requirement("C-resume-expired")
async def test_a_session_that_turns_out_to_be_gone_is_not_begun_anew(house: House) -> None:
    chat, which = await finished(house)
    await jobs.resume(house.deps, outside(chat), which, "say Good night.")
    house.engine.then(Fail(SessionGone("It is gone.")))

    await house.work()

    job = await house.job(chat, which)
    assert job.status is JobStatus.ERROR
    assert job.error is not None
    assert "no longer remembers this job" in job.error
    assert "new job" in house.prompts(chat)[-1]


@requirement("C-block-resume", "C-resume")
async def test_who_blocks_after_a_resume_waits_for_the_new_answer(house: House) -> None:
    chat, which = await finished(house)
    await house.ask(
        chat,
        lambda _: [
            Call("background_resume", {"task_id": which, "message": "say Good night."}),
            Call("background_block", {"task_ids": [which]}),
            Say("Never said."),
        ],
    )

    resumed, blocked = house.results()
    assert resumed.startswith(f"Resumed {which} 'say Hello.' for the 1st time: resumed.")
    assert blocked.startswith("Not all of these jobs have settled")
    going_on = house.prompts(chat)[-1]
    assert f"1 of 1 have settled.\n- {which} 'say Hello.': completed at" in going_on
    assert "Good night." in going_on
    assert house.said(chat)[-1] == "I see."
