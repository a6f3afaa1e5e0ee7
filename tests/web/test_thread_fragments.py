"""What stands in a conversation: marks, results of jobs, heads."""

import pytest
from support.doubles.engine import End, Fail, Say
from support.stage.api_stage import Asker, ask, ask_as, client, mate
from support.stage.stage import Stage
from support.stage.stages import clock, database, set_up, stage

from backburner.actions.origin import Origin
from backburner.actions.work import jobs
from backburner.actions.work.jobs import JobRequest
from backburner.core.conversation import Conversation
from backburner.core.errors import EngineFailed
from backburner.web.page_routes import add_pages

__all__ = ["ask", "ask_as", "client", "clock", "database", "mate", "set_up", "stage"]


@pytest.fixture(autouse=True)
def pages(ask: Asker) -> None:
    add_pages(ask.api)


async def read(asker: Asker, conversation: Conversation) -> str:
    answer = await asker("GET", f"/page/c/{conversation.id}")
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_marks_show_code_and_a_run_without_steps_says_nothing_of_them(
    ask: Asker, stage: Stage
) -> None:
    stage.engine.then(Fail(EngineFailed("No table `orders<b>`.", permanent=True)))
    task = await stage.task()
    await stage.work()

    html = await read(ask, task)

    assert "No table <code>orders&lt;b&gt;</code>" in html
    assert "No steps" not in html


async def test_the_result_of_a_job_stands_below_its_name(ask: Asker, stage: Stage) -> None:
    stage.engine.then(End({"complete": True, "message": "**$31** a month."}))
    stage.engine.then(Say(""))
    chat = await stage.chat()
    wish = JobRequest(description="Northwind", prompt="Read all of its pages.")
    await jobs.start(stage.deps, Origin(chat.user_id, chat.id), [wish])
    await stage.work()

    html = await read(ask, chat)

    assert '<span dir="auto">The job &#39;Northwind&#39; has finished.</span>' in html
    assert "<strong>$31</strong> a month." in html
    assert "Its request was" not in html
    # A reply without a word is not there.
    assert 'class="message theirs' not in html


async def test_a_question_stands_in_its_card_and_not_in_the_head_too(
    ask: Asker, stage: Stage
) -> None:
    asked = {"type": "choice", "prompt": "Left or right?", "options": ["left", "right"]}
    stage.engine.then(End({"needs_input": True, "message": "Hm.", "question": asked}))
    task = await stage.task()
    await stage.work()

    head = (await read(ask, task)).partition('id="head"')[2].partition("</header>")[0]

    assert "Needs you" in head
    assert "Left or right?" not in head
    assert "At once" not in head


async def test_a_question_has_a_page_while_it_is_open_and_for_its_user_only(
    ask: Asker, mate: Asker, stage: Stage
) -> None:
    asked = {"type": "choice", "prompt": "Left or right?", "options": ["left", "right"]}
    stage.engine.then(End({"needs_input": True, "message": "Hm.", "question": asked}))
    task = await stage.task()
    await stage.work()
    path = f"/page/q/{stage.question(task).id}"

    assert "Left or right?" in (await ask("GET", path)).text
    gone = await mate("GET", path)
    assert "No longer open" in gone.text
    assert "Left or right?" not in gone.text
    await stage.answer(task, "left")
    assert "What needs you now" in (await ask("GET", path)).text
    assert "No longer open" in (await ask("GET", "/page/q/q_nothing")).text
