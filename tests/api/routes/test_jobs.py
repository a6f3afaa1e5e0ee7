"""`/api/jobs`: what conversations handed out, seen and steered by their owner."""

from datetime import timedelta
from typing import Any

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End, Fail, Wait
from support.requirements import requirement
from support.stage.api_stage import Asker, read_rows
from support.stage.stage import Stage

from backburner.core.conversation import Conversation
from backburner.core.errors import EngineFailed
from backburner.ports import Tx

DONE = End({"complete": True, "message": "There are 7 files.", "result": {"files": 7}})


@pytest.fixture
async def chat(stage: Stage) -> Conversation:
    return await stage.chat()


async def start(ask: Asker, chat: Conversation, **more: Any) -> Any:
    job = {"conversation": chat.id, "description": "Count", "prompt": "Count the files."}
    return await ask.do("POST", "/api/jobs", job | more)


async def look(ask: Asker, job: Any) -> Any:
    return await ask.get(f"/api/jobs/{job['id']}")


@requirement("A-api")
async def test_a_job_is_started_done_and_seen_with_its_result(
    ask: Asker, stage: Stage, chat: Conversation
) -> None:
    stage.engine.then(Call("look"), DONE)
    job = await start(ask, chat, batch="counting")
    assert (job["status"], job["parent_id"], job["batch"]) == ("running", chat.id, "counting")
    assert (job["result"], job["completed_at"], job["calls"]) == (None, None, 0)
    await stage.work()

    done = await look(ask, job)
    assert (done["status"], done["result"]) == ("completed", "There are 7 files.")
    assert (done["data"], done["error"]) == ({"files": 7}, None)
    assert (done["calls"], done["recent_tools"]) == (1, ["look"])
    assert done["completed_at"]
    assert done["prompt"] == "Count the files."


async def test_a_job_that_a_user_started_reports_itself(
    ask: Asker, stage: Stage, chat: Conversation
) -> None:
    stage.engine.then(DONE)
    job = await start(ask, chat)
    await stage.work()

    (notice,) = (await ask.get("/api/notices"))["items"]
    assert (notice["text"], notice["conversation_id"]) == ("There are 7 files.", job["id"])
    assert any("There are 7 files." in said for said in stage.said(chat))
    # Nobody asked the agent of the chat for a comment.
    assert [request.conversation.id for request in stage.engine.requests] == [job["id"]]


async def test_looking_at_jobs_changes_nothing(
    ask: Asker, stage: Stage, chat: Conversation
) -> None:
    stage.engine.then(DONE)
    job = await start(ask, chat)
    await stage.work()
    before = read_rows(stage)
    await look(ask, job)
    await ask.get("/api/jobs")

    assert read_rows(stage) == before


async def test_jobs_are_listed_by_status_batch_and_parent_a_page_at_a_time(
    ask: Asker, stage: Stage, chat: Conversation
) -> None:
    other = await stage.chat()
    stage.engine.then(DONE)
    done = await start(ask, chat, batch="one")
    await stage.work()
    running = [await start(ask, chat, batch="one"), await start(ask, other, batch="two")]

    async def ids(**asked: Any) -> list[str]:
        return [one["id"] for one in (await ask.get("/api/jobs", **asked))["items"]]

    assert await ids(status="completed") == [done["id"]]
    assert set(await ids(status="running")) == {one["id"] for one in running}
    assert set(await ids(batch="one")) == {done["id"], running[0]["id"]}
    assert await ids(parent_id=other.id) == [running[1]["id"]]
    assert "result" not in (await ask.get("/api/jobs"))["items"][0]

    first = await ask.get("/api/jobs", limit=2)
    second = await ask.get("/api/jobs", limit=2, cursor=first["next"])
    turned = [one["id"] for one in (*first["items"], *second["items"])]
    assert second["next"] is None
    assert turned == await ids()
    assert len(turned) == 3


async def test_a_completed_job_is_followed_up_and_no_other(
    ask: Asker, stage: Stage, chat: Conversation
) -> None:
    stage.engine.then(DONE)
    stage.engine.then(End({"complete": True, "message": "Two are empty."}))
    job = await start(ask, chat)
    path, more = f"/api/jobs/{job['id']}/resume", {"message": "And empty ones?"}
    assert (await ask("POST", path, more)).status_code == 409
    await stage.work()

    resumed = await ask.do("POST", path, more)
    assert (resumed["status"], resumed["resume_count"]) == ("resumed", 1)
    assert (await ask("POST", path, more)).status_code == 409
    await stage.work()
    done = await look(ask, job)
    assert (done["status"], done["result"]) == ("completed", "Two are empty.")


async def test_a_job_is_cancelled_once_and_its_parent_told(
    ask: Asker, stage: Stage, chat: Conversation
) -> None:
    stage.engine.then(Wait())
    job = await start(ask, chat)
    await stage.take_up()
    cancelled = await ask.do("POST", f"/api/jobs/{job['id']}/cancel")
    await stage.renew()
    await stage.work()

    assert cancelled["status"] == "cancelled"
    again = await ask("POST", f"/api/jobs/{job['id']}/cancel")
    assert (again.status_code, again.json()["detail"]) == (409, "This job is not running.")
    (said,) = stage.said(chat)
    assert said.startswith("The job 'Count' was cancelled by the user.")
    assert [request.conversation.id for request in stage.engine.requests] == [job["id"]]
    assert (await ask.get("/api/notices"))["items"] == []


async def test_a_batch_is_cancelled_and_what_cannot_be_is_named(
    ask: Asker, stage: Stage, chat: Conversation
) -> None:
    stage.engine.then(DONE)
    done = await start(ask, chat, batch="one")
    await stage.work()
    running = await start(ask, chat, batch="one")
    other = await start(ask, chat, batch="two")

    batch = {"conversation": chat.id, "batch": "one"}
    changed = await ask.do("POST", "/api/jobs/cancel", batch)
    assert [one["id"] for one in changed["done"]] == [running["id"]]
    assert [one["id"] for one in changed["left"]] == [done["id"]]
    named = {"conversation": chat.id, "jobs": [other["id"], "c_gone"]}
    changed = await ask.do("POST", "/api/jobs/cancel", named)
    assert [one["id"] for one in changed["done"]] == [other["id"]]
    assert changed["unknown"] == ["c_gone"]
    assert (await ask("POST", "/api/jobs/cancel", {"conversation": chat.id})).status_code == 400


async def test_jobs_that_have_ended_are_removed_and_the_others_stay(
    ask: Asker, stage: Stage, chat: Conversation
) -> None:
    stage.engine.then(DONE)
    stage.engine.then(DONE)
    done = await start(ask, chat)
    await stage.work()
    also_done = await start(ask, chat)
    await stage.work()
    running = await start(ask, chat)

    refused = await ask("DELETE", f"/api/jobs/{running['id']}")
    assert (refused.status_code, refused.json()["hint"]) == (409, "Cancel it first.")
    assert (await ask("DELETE", f"/api/jobs/{done['id']}")).status_code == 204
    assert (await ask("GET", f"/api/jobs/{done['id']}")).status_code == 404
    cleared = await ask.do("POST", "/api/jobs/clear", {"conversation": chat.id})
    assert [one["id"] for one in cleared["done"]] == [also_done["id"]]
    assert [one["id"] for one in cleared["left"]] == [running["id"]]


async def test_what_is_no_job_is_not_found_among_them(ask: Asker, chat: Conversation) -> None:
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/cancel")):
        answer = await ask(method, f"/api/jobs/{chat.id}{path}")
        assert answer.status_code == 404


async def test_a_job_needs_a_profile_that_is_there_and_an_open_conversation(
    ask: Asker, chat: Conversation
) -> None:
    job = {"conversation": chat.id, "description": "Count", "prompt": "Count."}
    assert (await ask("POST", "/api/jobs", job | {"agent": "nobody"})).status_code == 400
    assert (await ask("POST", "/api/jobs", job | {"prompt": ""})).status_code == 422
    await ask.do("POST", f"/api/conversations/{chat.id}/archive")
    assert (await ask("POST", "/api/jobs", job)).status_code == 409


@requirement("C-long")
async def test_a_job_is_started_with_a_timeout_and_shows_it(ask: Asker, chat: Conversation) -> None:
    usual, long = await start(ask, chat), await start(ask, chat, timeout=7200)
    assert (usual["timeout"], long["timeout"]) == (3600, 7200)
    assert (await look(ask, long))["timeout"] == 7200

    job = {"conversation": chat.id, "description": "Count", "prompt": "Count."}
    for wrong in (9, 86401, "2h"):
        assert (await ask("POST", "/api/jobs", job | {"timeout": wrong})).status_code == 422


@requirement("C-long")
async def test_jobs_and_tasks_show_what_they_say_they_are_doing(
    ask: Asker, stage: Stage, chat: Conversation
) -> None:
    stage.engine.then(Wait())
    stage.engine.then(Wait())
    job, task = await start(ask, chat), await stage.task()
    await stage.take_up()
    turns = [run.claim.turn for run in stage.underway]

    def say(tx: Tx) -> None:
        for turn in turns:
            tx.runs.save_progress(turn, "Half of it.")

    stage.database.run(say)
    for path in (f"/api/jobs/{job['id']}", f"/api/tasks/{task.id}"):
        shown = (await ask.get(path))["progress"]
        assert (shown["text"], bool(shown["reported_at"])) == ("Half of it.", True)
    for path in ("/api/jobs", "/api/tasks"):
        (listed,) = (await ask.get(path))["items"]
        assert listed["progress"]["text"] == "Half of it."
    stage.kill()


@requirement("C-agents")
async def test_agents_are_listed_and_named_by_jobs_and_tasks(
    ask: Asker, chat: Conversation
) -> None:
    agents = {agent["name"]: agent for agent in await ask.get("/api/agents")}
    assert list(agents) == ["general", "researcher", "coder"]
    assert agents["general"]["tools"] is None
    assert all(agent["built_in"] for agent in agents.values())

    job = await start(ask, chat, agent="researcher")
    task = {"name": "Review", "prompt": "Look.", "when": "in 2h", "agent": "coder"}
    made = await ask.do("POST", "/api/tasks", task)
    shown = await ask.get(f"/api/conversations/{job['id']}")
    assert (job["agent"], shown["agent"], made["agent"]) == ("researcher", "researcher", "coder")
    assert shown["tools"] == agents["researcher"]["tools"]
    wider = {"tools": ["read_file", "fetch_url"]}
    answer = await ask("PATCH", f"/api/tasks/{made['id']}", wider)
    assert answer.status_code == 400
    assert "The agent 'coder' may not use fetch_url." in answer.text
    freed = await ask.do("PATCH", f"/api/tasks/{made['id']}", {"tools": None})
    assert freed["tools"] == agents["coder"]["tools"]


async def test_a_job_that_failed_says_why(
    ask: Asker, stage: Stage, chat: Conversation, clock: SetClock
) -> None:
    for _ in range(2):
        stage.engine.then(Fail(EngineFailed("The model is gone.", permanent=True)))
    job = await start(ask, chat)
    for _ in range(2):
        await stage.work()
        clock.advance(timedelta(hours=1))

    failed = await look(ask, job)
    assert (failed["status"], failed["result"]) == ("error", None)
    assert "The model is gone." in failed["error"]
