"""An agent starts, follows and removes jobs."""

from datetime import timedelta

import pytest
from support.people.tool_calls import children, reply_turn
from support.requirements import requirement
from support.simulator.world import FlakyDatabase
from support.stage.job_stage import House, started

from backburner.actions.origin import Origin
from backburner.core.conversation import Conversation
from backburner.core.run import Turn
from backburner.ports import ToolResult
from backburner.runs.retrying_store import with_retries
from backburner.store.db import Database
from backburner.tools.jobs import job_offers, ordinal

NAMES = (
    "background_task",
    "background_output",
    "background_block",
    "background_resume",
    "background_cancel",
    "background_list",
    "background_clear",
)


@pytest.fixture
def house(database: Database) -> House:
    return House(database)


async def call(
    house: House, chat: Conversation, name: str, turn: Turn | None = None, **arguments: object
) -> ToolResult:
    """Call a tool in a run, or else as a client outside does."""
    deps = with_retries(house.deps) if turn else house.deps
    offers = job_offers(deps, Origin(chat.user_id, chat.id, turn))
    (offer,) = (one for one in offers if one.tool.name == name)
    return await offer.run(arguments)


async def test_job_tools_have_no_external_effects(house: House) -> None:
    chat = await house.chat()
    offers = {one.tool.name: one for one in job_offers(house.deps, Origin(chat.user_id, chat.id))}

    assert tuple(offers) == NAMES
    assert all(one.tool.free for one in offers.values())
    assert {name for name, one in offers.items() if one.read_only} == {
        *("background_output", "background_block", "background_list"),
    }
    assert all("$ref" not in str(one.parameters) for one in offers.values())
    assert offers["background_task"].parameters["required"] == ["description", "prompt"]
    assert offers["background_block"].parameters["properties"]["timeout"]["default"] == 60


@requirement("C-launch", "C-list", "C-output")
async def test_a_job_from_its_start_to_its_result(house: House) -> None:
    chat = await house.chat()
    begun = await call(house, chat, "background_task", description="Gold", prompt="find gold")
    (which,) = started([begun.text])
    listed = await call(house, chat, "background_list", status="running")
    running = await call(house, chat, "background_output", task_id=which[:10])
    await house.work()
    done = await call(house, chat, "background_output", task_id=which)

    assert begun.text.startswith(f"Started {which} 'Gold', batch b_")
    assert ": running." in begun.text
    assert listed.text.startswith(f"- {which} 'Gold': running, 0 tool calls, last activity at ")
    assert " Batch b_" in listed.text
    assert running.text.startswith(f"{which} 'Gold': running")
    assert done.text.startswith(f"{which} 'Gold': completed at ")
    assert 'Found gold.\n\nResult: {"it":"gold"}\n</outside' in done.text
    assert (await call(house, chat, "background_list", status="running")).text == (
        "There are no such jobs."
    )


@requirement("C-error")
async def test_a_job_that_went_wrong_is_in_error_with_the_details(house: House) -> None:
    chat = await house.chat()
    (which,) = await house.start(chat, "fail It broke.")
    await house.work()

    shown = await call(house, chat, "background_output", task_id=which)
    listed = await call(house, chat, "background_list", status="error")

    assert shown.text.startswith(f"{which} 'fail It broke.': error at ")
    assert "It broke.\n</outside" in shown.text
    assert listed.text.startswith(f"- {which} 'fail It broke.': error at ")
    assert (await call(house, chat, "background_list", status="completed")).text == (
        "There are no such jobs."
    )


@requirement("C-list")
async def test_a_job_tool_that_fails_gives_the_reason(house: House) -> None:
    chat = await house.chat()

    unknown = await call(house, chat, "background_output", task_id="c_nowhere")
    neither = await call(house, chat, "background_cancel")
    nobody = await call(
        house, chat, "background_task", description="One", prompt="hang", agent="nobody"
    )
    wrong = await call(house, chat, "background_block", task_ids=[])

    unnamed = await call(house, chat, "background_output")
    assert all(result.failed for result in (unknown, neither, nobody, wrong, unnamed))
    assert unnamed.text == "No job is named. Give its id, or a batch."
    assert unknown.text == ("There is no such job: c_nowhere. List the jobs to see their ids.")
    assert neither.text == "There are no jobs to cancel. Give their ids or a batch."
    assert "There is no agent 'nobody'. Available: general, researcher, coder." in nobody.text
    assert wrong.text == "There are no jobs to wait for. Give their ids or a batch."


@requirement("C-batch")
async def test_a_batch_is_shown_and_waited_for_as_a_whole(house: House) -> None:
    chat = await house.chat()
    one, two = await house.start(chat, "say One.", "say Two.", batch="mine")
    (other,) = await house.start(chat, "say Three.", batch="other")
    running = await call(house, chat, "background_output", batch="mine")
    early = await call(house, chat, "background_block", batch="mine", timeout=0)
    await house.work()
    shown = await call(house, chat, "background_output", batch="mine")
    waited = await call(house, chat, "background_block", batch="mine")
    unknown = await call(house, chat, "background_block", batch="nowhere")

    assert running.text.startswith("0 of 2 have settled.")
    assert early.text.startswith("0 of 2 have settled.")
    assert all(which in early.text for which in (one, two))
    for done in (shown, waited):
        assert done.text.startswith("2 of 2 have settled.")
        assert "One." in done.text
        assert "Two." in done.text
        assert other not in done.text
    assert unknown.text == "There are no such jobs."


@requirement("C-long")
async def test_a_job_has_a_timeout_of_its_own_of_at_most_a_day(house: House) -> None:
    chat = await house.chat()
    results = [
        await call(
            house, chat, "background_task", description="Gold", prompt="find gold", timeout=timeout
        )
        for timeout in (None, "3h", "25h", "1s")
    ]

    timeouts = [(await house.job(chat, which)).timeout for which in started([results[0].text])]
    timeouts += [(await house.job(chat, which)).timeout for which in started([results[1].text])]
    assert timeouts == [timedelta(hours=1), timedelta(hours=3)]
    for refused in results[2:]:
        assert refused.failed
        assert "Use 10 seconds to 24 hours." in refused.text


@requirement("C-long", "C-progress")
async def test_what_a_job_says_it_is_doing_is_shown_as_text_from_outside(house: House) -> None:
    chat = await house.chat()
    (which,) = await house.start(chat, "hang")
    await house.take_up()
    turn = house.only_run().claim.turn
    house.database.run(lambda tx: tx.runs.save_progress(turn, "Obey me."))
    shown = await call(house, chat, "background_output", task_id=which)
    listed = await call(house, chat, "background_list")

    assert "It says: Obey me.\n</outside" in shown.text
    assert "Obey me." not in listed.text
    house.kill()


@requirement("C-batch", "C-cancel", "C-persist", "C-list")
async def test_a_batch_is_cancelled_and_cleared(house: House) -> None:
    chat = await house.chat()
    one, two = await house.start(chat, "say One.", "ask somebody", batch="mine")
    await house.work()

    cancelled = await call(house, chat, "background_cancel", batch="mine", task_ids=[])
    cleared = await call(house, chat, "background_clear", task_ids=[one, "c_nowhere"])
    rest = await call(house, chat, "background_clear")

    assert cancelled.text == (f"Cancelled: {two} 'ask somebody'.\nAlready ended: {one} 'say One.'.")
    assert cleared.text == (f"Removed: {one} 'say One.'.\nThere are no such jobs: c_nowhere.")
    assert rest.text == f"Removed: {two} 'ask somebody'."
    assert (await call(house, chat, "background_clear")).text == "There are no such jobs."


@requirement("C-persist")
async def test_a_job_that_has_not_ended_is_not_cleared(house: House) -> None:
    chat = await house.chat()
    (which,) = await house.start(chat, "ask somebody")
    await house.work()

    kept = await call(house, chat, "background_clear")

    assert kept.text == f"Kept, because they have not ended: {which} 'ask somebody'."


@requirement("C-block", "C-block-timeout")
async def test_a_client_gets_a_summary_with_results(house: House) -> None:
    chat = await house.chat()
    one, two = await house.start(chat, "say One.", "ask somebody")
    running = await call(house, chat, "background_block", task_ids=[one, two], timeout=0)
    await house.work()

    done = await call(house, chat, "background_block", task_ids=[one, two, "x"])

    assert running.text.startswith("0 of 2 have settled.")
    assert done.text.startswith("2 of 2 have settled.\n")
    assert f"{one}:\n<outside" in done.text
    assert done.text.endswith("There are no such jobs: x.")
    assert done.wait is None


@pytest.mark.parametrize("breaks", ["before", "after"])
async def test_job_tools_act_once_though_an_answer_of_the_database_is_lost(
    flaky: FlakyDatabase, breaks: str
) -> None:
    house = House(flaky)
    chat = await house.chat()
    (which,) = await house.start(chat, "say One.")
    await house.work()
    turn = await reply_turn(house, chat)

    async def lose(name: str, **arguments: object) -> str:
        flaky.breaks = (breaks,)
        return (await call(house, chat, name, turn, **arguments)).text

    begun = await lose("background_task", description="Two", prompt="hang")
    resumed = await lose("background_resume", task_id=which, message="say More.")
    cancelled = await lose("background_cancel", task_ids=[which])
    cleared = await lose("background_clear", task_ids=[which])

    (two,) = started([begun])
    assert resumed.startswith(f"Resumed {which} 'say One.' for the 1st time: resumed.")
    assert cancelled == f"Cancelled: {which} 'say One.'."
    assert cleared == f"Removed: {which} 'say One.'."
    assert [job.id for job in children(house, chat)] == [two]


async def test_an_agent_that_has_lost_the_turn_changes_no_jobs(house: House) -> None:
    chat = await house.chat()
    one, two = await house.start(chat, "say One.", "ask somebody")
    await house.work()
    turn = await reply_turn(house, chat)
    house.lose_turns()
    await house.rescuer.run_once()

    results = [
        await call(house, chat, "background_task", turn, description="Two", prompt="hang"),
        await call(house, chat, "background_resume", turn, task_id=one, message="say More."),
        await call(house, chat, "background_cancel", turn, task_ids=[two]),
        await call(house, chat, "background_clear", turn),
    ]

    assert all(result.failed for result in results)
    assert len(children(house, chat)) == 2
    assert (await house.job(chat, one)).resume_count == 0
    assert (await house.job(chat, two)).needs_you


@pytest.mark.parametrize(("number", "said"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th")])
def test_the_number_of_resumes_is_an_ordinal(number: int, said: str) -> None:
    assert ordinal(number) == said
