"""`/api/jobs/tree`: jobs below what has started them."""

from datetime import timedelta
from typing import Any

from support.doubles.clock import SetClock
from support.doubles.engine import Call, End, Fail, Spend, Wait
from support.stage.api_stage import NOBODYS, Asker
from support.stage.make import NOON, USER
from support.stage.stage import Stage
from support.stage.until import until
from support.statements import watched

from backburner.actions.work import job_trees
from backburner.actions.work.job_trees import MAX_SIBLINGS
from backburner.core import transitions
from backburner.core.errors import EngineFailed
from backburner.core.ids import ConversationId, new_conversation_id
from backburner.core.schedule import Immediate
from backburner.core.transitions import Brief, Step
from backburner.ports import Tx

SECOND = timedelta(seconds=1)


async def start(ask: Asker, parent: str, name: str) -> str:
    job = {"conversation": parent, "description": name, "prompt": "Do it."}
    made: str = (await ask.do("POST", "/api/jobs", job))["id"]
    return made


def shape(nodes: Any) -> list[Any]:
    """Read the names and what is below them."""
    return [(one["title"], one["status"], shape(one["children"])) for one in nodes]


async def test_jobs_stand_below_what_started_them_with_what_became_of_them(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    stage.engine.then(Spend(7), End({"complete": True}))
    stage.engine.then(Fail(EngineFailed("Broken.", permanent=True)))
    await start(ask, chat.id, "Good")
    await stage.work()
    clock.advance(SECOND)
    await start(ask, chat.id, "Bad")
    await stage.work()
    clock.advance(SECOND)
    stage.engine.then(Call("look", {"at": "CI"}), Wait())
    above = await start(ask, chat.id, "Above")
    await stage.take_up()
    await until(lambda: bool(stage.tools.calls))
    below = await start(ask, above, "Below")
    clock.advance(5 * SECOND)

    found = await ask.get("/api/jobs/tree")

    (tree,) = found["trees"]
    assert (tree["conversation_id"], tree["kind"], found["is_cut"]) == (chat.id, "chat", False)
    assert tree["counts"]["in_words"] == "1 of 3 done, 1 failed"
    assert shape(tree["children"]) == [
        ("Above", "running", [("Below", "running", [])]),
        ("Bad", "error", []),
        ("Good", "completed", []),
    ]
    running, bad, good = tree["children"]
    assert (running["doing"], running["calls"]) == ("thinking, after look: at=CI", 1)
    assert (running["elapsed_seconds"], running["counts"]["in_words"]) == (5, "0 of 1 done")
    assert (bad["error"], good["spent"]["tokens"]) == ("Broken.", 7)
    under = await ask.get("/api/jobs/tree", conversation_id=above)
    assert shape(under["trees"][0]["children"]) == [("Below", "running", [])]
    assert under["trees"][0]["children"][0]["id"] == below
    stage.kill()


async def test_a_conversation_without_jobs_has_an_empty_tree(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()

    assert (await ask.get("/api/jobs/tree"))["trees"] == []
    (tree,) = (await ask.get("/api/jobs/tree", conversation_id=chat.id))["trees"]
    assert (tree["children"], tree["counts"]["in_words"]) == ([], "")


async def test_more_jobs_are_cut_and_counted(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    brief = Brief(title="Job", prompt="Do it.", schedule=Immediate(), parent_id=chat.id)

    def add(tx: Tx) -> None:
        for _ in range(MAX_SIBLINGS + 1):
            which = new_conversation_id()
            tx.conversations.add(transitions.start_job(which, USER, brief, now=NOON))

    stage.database.run(add)

    found = await ask.get("/api/jobs/tree", conversation_id=chat.id)

    assert found["is_cut"] is True
    assert len(found["trees"][0]["children"]) == MAX_SIBLINGS
    assert found["trees"][0]["counts"]["total"] == MAX_SIBLINGS + 1


async def test_the_number_of_statements_does_not_grow_with_that_of_jobs(
    ask: Asker, stage: Stage
) -> None:
    taken = []
    for _ in range(2):
        chat = await stage.chat()
        for number in range(3):
            above = await start(ask, chat.id, f"Job {number}")
            await start(ask, above, "Below")
        with watched(stage.database) as statements:
            await job_trees.trees(stage.deps, chat.user_id)
        taken.append(len(statements))

    assert taken[0] == taken[1] <= 20


async def test_nobody_elses_jobs_are_shown(ask: Asker, mate: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    await start(ask, chat.id, "Mine")

    assert (await mate.get("/api/jobs/tree"))["trees"] == []
    for place in (chat.id, f"c_{NOBODYS}"):
        params = {"conversation_id": place}
        assert (await mate("GET", "/api/jobs/tree", params=params)).status_code == 404


async def test_a_job_says_what_it_waits_for(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    question = {"type": "input", "prompt": "Which one?"}
    stage.engine.then(End({"needs_input": True, "message": "Hm.", "question": question}))
    await start(ask, chat.id, "Asks")
    await stage.work()
    above = await start(ask, chat.id, "Above")
    stage.engine.then(Wait())
    await stage.take_up()
    await until(lambda: stage.engine.underway == 1)
    turn = stage.only_run().claim.turn
    below = await start(ask, above, "Below")

    def hand_back(tx: Tx) -> None:
        step = Step(conversation=tx.turns.hold(turn))
        tx.turns.hand_back(turn, step, until=tx.now + SECOND)
        tx.jobs.wait(turn, {ConversationId(below): False})

    stage.database.run(hand_back)
    stage.kill()

    (tree,) = (await ask.get("/api/jobs/tree"))["trees"]

    waits = {one["title"]: one["waits_for"] for one in tree["children"]}
    assert waits == {
        "Asks": "It waits for your answer.",
        "Above": "It waits for its jobs: 0 of 1 done.",
    }
    (asks,) = [one for one in tree["children"] if one["title"] == "Asks"]
    asked = (await ask.get("/api/questions"))["items"]
    assert [asks["question_id"]] == [one["id"] for one in asked]
    (found,) = next(one["children"] for one in tree["children"] if one["title"] == "Above")
    assert found["waits_for"] == "It waits for its turn."
