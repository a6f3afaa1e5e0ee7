"""What stands in a conversation: marks, results of jobs, heads."""

import re

import pytest
from support.doubles.engine import End, Fail, Say
from support.stage.api_stage import Asker, ask, ask_as, client, mate
from support.stage.stage import Stage
from support.stage.stages import clock, database, set_up, stage

from backburner.actions.origin import Origin
from backburner.actions.work import jobs
from backburner.actions.work.jobs import JobRequest
from backburner.core.content.attachment import MAX_ATTACHMENTS
from backburner.core.conversation import Conversation
from backburner.core.errors import EngineFailed
from backburner.core.schedule import Cron
from backburner.web.page_routes import add_pages

DAILY = Cron("0 9 * * *", "UTC")

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


async def test_of_very_much_text_the_newest_is_rendered_and_of_the_rest_the_beginning(
    ask: Asker, mate: Asker
) -> None:
    texts = [f"**m{number}** {'word ' * 19_900}end{number}" for number in range(4)]
    chat = await ask.do("POST", "/api/conversations", {"message": texts[0]})
    path = f"/api/conversations/{chat['id']}/messages"
    for text in texts[1:]:
        await ask.do("POST", path, {"content": text})

    html = (await ask("GET", f"/page/c/{chat['id']}")).text
    load = html.partition('data-load="')[2].partition('"')[0]
    alone = await ask("GET", load)
    again = (await ask("GET", f"/page/c/{chat['id']}/tail")).text

    assert [f"<strong>m{number}</strong>" in html for number in range(4)] == [False, *[True] * 3]
    assert '<pre class="plain" tabindex="0">**m0** word' in html
    assert html.count("data-load") == 1
    assert alone.text.startswith("<p><strong>m0</strong> word")
    assert "end0</p>" in alone.text
    assert (await mate("GET", load)).status_code == 404
    assert (await ask("GET", f"{load}x")).status_code == 404
    # It is kept now.
    assert "<strong>m0</strong>" in again
    assert "data-load" not in again


async def test_a_time_without_a_zone_is_refused(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()

    answer = await ask("GET", f"/page/c/{chat.id}/tail?since=2026-01-01T00:00:00")

    assert answer.status_code == 422


async def test_a_question_says_what_is_announced_when_it_arrives(ask: Asker, stage: Stage) -> None:
    asked = {"type": "confirmation", "prompt": "Shall I push <b>it</b>?"}
    stage.engine.then(End({"needs_input": True, "message": "Hm.", "question": asked}))
    task = await stage.task()
    await stage.work()
    await ask.do("PATCH", f"/api/conversations/{task.id}", {"title": "Nightly builds"})

    html = await read(ask, task)

    assert 'data-said="Nightly builds asks: Shall I push &lt;b&gt;it&lt;/b&gt;?"' in html


async def test_the_last_background_run_can_be_run_again_where_it_failed(
    ask: Asker, stage: Stage
) -> None:
    stage.engine.then(Fail(EngineFailed("The disk is full.", permanent=True)))
    task = await stage.task(DAILY)
    await ask.do("POST", f"/api/conversations/{task.id}/run-now")
    await stage.work()
    run_now = f'data-call="POST /api/conversations/{task.id}/run-now"'

    failed = (await read(ask, task)).partition('<article class="background failed"')[2]
    assert run_now in failed.partition("</article>")[0]

    stage.engine.then(End({"complete": False, "message": "All is well."}))
    await ask.do("POST", f"/api/conversations/{task.id}/run-now")
    await stage.work()
    html = await read(ask, task)
    for block in html.split('<article class="background')[1:]:
        assert run_now not in block.partition("</article>")[0]


async def test_an_archived_conversation_says_so_in_its_head_and_can_be_reopened_beside_the_field(
    ask: Asker, stage: Stage
) -> None:
    chat = await stage.chat()
    head = f"/page/c/{chat.id}/head"
    assert "data-archived" not in (await ask("GET", head)).text

    await ask.do("POST", f"/api/conversations/{chat.id}/archive")

    # The head follows changes; the style sheet shows the note or the field by it.
    assert "data-archived" in (await ask("GET", head)).text
    assert f'data-call="POST /api/conversations/{chat.id}/reopen"' in await read(ask, chat)


async def test_a_command_that_ends_work_asks_first(ask: Asker, stage: Stage) -> None:
    task = await stage.task(DAILY)
    path = f"/api/conversations/{task.id}"
    html = await read(ask, task)
    commands = {
        name: attributes
        for attributes, name in re.findall(r'<(?:a|button) ([^>]*data-name="(/\w+)"[^>]*)>', html)
    }

    assert f'data-call="POST {path}/cancel"' in commands["/cancel"]
    assert 'data-confirm="Stop this work for good?' in commands["/cancel"]
    assert "data-confirm" not in commands["/run"]
    assert 'href="/needs-you"' in commands["/needs"]


async def test_commands_that_need_no_conversation_are_there_before_it(ask: Asker) -> None:
    html = (await ask("GET", "/page/new")).text

    names = set(re.findall(r'data-name="(/\w+)"', html))
    assert names == {"/new", "/needs", "/running", "/spending", "/keys"}


async def test_a_file_that_is_no_image_says_that_it_is_downloaded(ask: Asker) -> None:
    taken = await ask(
        "POST",
        "/api/files?name=table.csv",
        content=b"a,b\n1,2\n",
        headers={"content-type": "application/octet-stream"},
    )
    digest = taken.json()["digest"]
    made = await ask.do(
        "POST",
        "/api/conversations",
        {"message": "Read this.", "attachments": [{"digest": digest, "name": "table.csv"}]},
    )
    html = (await ask("GET", f"/page/c/{made['id']}")).text

    card = html.partition('data-name="table.csv"')[2].partition("</button>")[0]
    assert '<span class="hidden-text">Download</span>' in card


async def test_the_field_says_how_many_files_a_message_can_have(ask: Asker) -> None:
    html = (await ask("GET", "/page/new")).text

    assert f'data-max-files="{MAX_ATTACHMENTS}"' in html
    assert f"At most {MAX_ATTACHMENTS} files fit in a message; take {{number}} away." in html
