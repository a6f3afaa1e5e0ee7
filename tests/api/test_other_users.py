"""What is somebody else's is answered, on every path, as what nobody has."""

import re
from typing import Any

from support.doubles.engine import Call
from support.requirements import requirement
from support.stage.api_stage import NOBODYS, Asker, read_rows
from support.stage.make import MATE, NOON
from support.stage.stage import Stage

from backburner.actions.origin import Origin
from backburner.actions.work import jobs
from backburner.core.connections.connection import Connection
from backburner.core.ids import new_connection_id
from backburner.core.tool_policy import ALWAYS_HERE

COUNT = jobs.JobRequest(description="Count", prompt="Count the files.")
ID = re.compile(r"\{\w+_id\}")
#: By the end of the path, what a request needs to be more than a wrong one.
BODIES: dict[str, Any] = {
    "messages": {"content": "Hello."},
    "last": {"content": "Hello."},
    "answer": {"answer": "yes"},
    "snooze": {"for": "1h"},
    "schedule": {"when": "every 30m", "what": "Look."},
    "conversations/{conversation_id}": {"title": "Mine"},
    "grants/{grant_id}": {"words": ["git"]},
    "tasks/{task_id}": {"name": "Mine"},
    "jobs/resume": {"message": "Go on."},
    "conversations/connections": {"names": []},
    "conversations/allowance": {"limit": "1 USD"},
    "connections/{connection_id}": {"title": "Mine"},
    "connections/headers": {"headers": {"X-Key": "x"}},
    "connections/accept": {"tools": {"send": "0"}},
    "connections/sign-in": {},
    "connections/wait": {"secret": "0"},
    "connections/ticks": {"tool": "send", "read_only": True},
}


async def ids_of_mate(stage: Stage) -> dict[str, str]:
    """Let somebody else have one of everything, by the name of its path."""
    stage.engine.then(Call("send"))
    stage.engine.then(Call("send"), Call("send"))
    task = await stage.task(user=MATE)
    await stage.work()
    await stage.answer(task, ALWAYS_HERE)
    await stage.work()
    chat = await stage.chat(MATE)
    stage.engine.then(Call("send"))
    await stage.say(chat, "Send it.")
    await stage.work()
    (job,) = await jobs.start(stage.deps, Origin(MATE, chat.id), [COUNT])
    connection = Connection(
        id=new_connection_id(), user_id=MATE, name="mail", title="Mail", created_at=NOON
    )
    stage.database.run(lambda tx: tx.connections.add(connection))
    (grant,) = stage.database.run(lambda tx: tx.grants.valid(MATE, task.id))
    return {
        "conversations": chat.id,
        "tasks": task.id,
        "jobs": job.id,
        "questions": stage.question(chat).id,
        "runs": stage.history(task)[0].id,
        "grants": grant.id,
        "connections": connection.id,
    }


@requirement("A-api")
async def test_the_ids_of_others_are_answered_as_those_of_nobody(ask: Asker, stage: Stage) -> None:
    theirs = await ids_of_mate(stage)
    described = await ask.get("/api/openapi.json")
    tried = 0
    for path, operations in described["paths"].items():
        kind = path.split("/")[2] if path.startswith("/api/") else ""
        if kind not in theirs or "_id}" not in path:
            continue
        for method in operations:
            end = path.rsplit("/", 1)[1]
            needed = BODIES.get(f"{kind}/{end}", BODIES.get(end))
            body = needed if method in ("post", "put", "patch") else None
            before = read_rows(stage)
            other = await ask(method.upper(), ID.sub(theirs[kind], path), body)
            nobodys = ID.sub(f"{theirs[kind][0]}_{NOBODYS}", path)
            nothing = await ask(method.upper(), nobodys, body)
            after = read_rows(stage)

            assert (other.status_code, other.json()) == (nothing.status_code, nothing.json())
            assert (path, method, other.status_code) == (path, method, 404)
            assert before == after, path
            tried += 1
    assert tried >= 20


async def test_what_cannot_be_an_id_is_answered_in_the_same_way(ask: Asker) -> None:
    for odd in ("c_%00", "%F0%9F%98%80", "c_" + "x" * 500, "c'--", "%ED%A0%80", "c%20d"):
        answer = await ask("GET", f"/api/conversations/{odd}")
        assert answer.status_code == 404, odd
        assert answer.json()["detail"] == "There is nothing here with that id."


async def test_lists_have_nothing_of_others(ask: Asker, mate: Asker, stage: Stage) -> None:
    theirs = await ids_of_mate(stage)
    await mate.do("PUT", "/api/memories/key", {"text": "Theirs."})
    assert (await mate.get("/api/notices"))["items"]

    for path in ("conversations", "tasks", "jobs", "questions", "notices", "memories"):
        assert (await ask.get(f"/api/{path}"))["items"] == [], path
    of_theirs = {"conversation_id": theirs["conversations"]}
    assert (await ask("GET", "/api/spend", params=of_theirs)).status_code == 404
    assert (await ask("GET", "/api/memories/key")).status_code == 404
    assert (await ask("GET", "/api/jobs/tree", params=of_theirs)).status_code == 404
    assert (await ask.get("/api/jobs/tree"))["trees"] == []
    assert (await ask.get("/api/upcoming", days=31, paused=True))["entries"] == []
    assert (await ask.get("/api/spend"))["top"] == []
    assert (await ask.get("/api/away"))["lanes"] == []
    for status in ("running", "queued", "ended"):
        assert (await ask.get("/api/runs", status=status))["items"] == []
    assert (await ask.get("/api/jobs", parent_id=theirs["conversations"]))["items"] == []
    found = await ask.get("/api/conversations", parent_id=theirs["conversations"])
    assert found["items"] == []


async def test_work_cannot_be_hung_on_what_is_somebody_elses(ask: Asker, stage: Stage) -> None:
    theirs = await ids_of_mate(stage)
    for which in (theirs["conversations"], f"c_{NOBODYS}"):
        after = {"type": "after", "conversation": which}
        body = {"what": "Look.", "schedule": after}
        assert (await ask("POST", "/api/conversations", body)).status_code == 404
        some: Any = {"conversation": which, "jobs": [theirs["jobs"]], "batch": "b"}
        job = {"conversation": which, "description": "Count", "prompt": "Count."}
        for path, asked in (("", job), ("/cancel", some), ("/clear", some)):
            assert (await ask("POST", f"/api/jobs{path}", asked)).status_code == 404, path


async def test_a_deleted_conversation_is_answered_as_nobodys_on_every_path(
    ask: Asker, stage: Stage
) -> None:
    stage.engine.then(Call("send"))
    task = await stage.task()
    await stage.work()
    ids = {
        "conversations": task.id,
        "tasks": task.id,
        "questions": stage.question(task).id,
        "runs": stage.history(task)[0].id,
    }
    await ask.do("DELETE", f"/api/conversations/{task.id}")
    described = await ask.get("/api/openapi.json")
    tried = 0
    for path, operations in described["paths"].items():
        kind = path.split("/")[2] if path.startswith("/api/") else ""
        if kind not in ids or "_id}" not in path or path.endswith("/restore"):
            continue
        for method in operations:
            end = path.rsplit("/", 1)[1]
            needed = BODIES.get(f"{kind}/{end}", BODIES.get(end))
            body = needed if method in ("post", "put", "patch") else None
            answer = await ask(method.upper(), ID.sub(ids[kind], path), body)
            assert (path, method, answer.status_code) == (path, method, 404)
            tried += 1
    assert tried >= 30
    for path in ("conversations", "tasks", "questions", "notices"):
        assert (await ask.get(f"/api/{path}"))["items"] == [], path
    of_it = {"conversation_id": task.id}
    assert (await ask("GET", "/api/spend", params=of_it)).status_code == 404
