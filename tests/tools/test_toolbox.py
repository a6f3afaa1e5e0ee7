"""An agent is offered what its work may use."""

from support.doubles.engine import Call
from support.people.tool_calls import WATCH, children, schedule
from support.requirements import requirement
from support.stage.stage import Stage

SCHEDULE_WORK = (
    "Do something in the background: later, again and again, or now while the talk goes on. Use it"
    " whenever the user asks for something that takes time, comes later or comes back. It becomes"
    " the work of this conversation; if that has work already, a task of its own that reports here."
    " The answer says when it runs: tell the user those times. Work that was not asked for in a"
    " chat, or after text of others was read, waits for the user's yes."
)


@requirement("B-tool-scope")
async def test_an_agent_is_shown_no_tool_its_work_may_not_use(stage: Stage) -> None:
    task = await stage.task(tools=("list_work",))
    free = await stage.task()
    stage.engine.then_as(lambda request: (Call(request.tools[0].tool.name),))
    await stage.work()

    shown = {
        request.conversation.id: [offer.tool.name for offer in request.tools]
        for request in stage.engine.requests
    }
    assert shown[task.id] == ["list_work"]
    assert {"schedule_work", "stop_work", "list_work", "task_add"} <= set(shown[free.id])


@requirement("B-tool-scope")
async def test_what_is_restricted_hands_out_nothing_that_is_less_so(stage: Stage) -> None:
    scope = ("list_work", "schedule_work")
    task = await stage.task(tools=scope)
    stage.engine.then(schedule(**WATCH))
    await stage.work()

    (child,) = children(stage, task)
    assert child.tools == scope
    (question,) = child.questions
    assert question.binds_to["shown"]["tools"] == list(scope)


async def test_an_agent_reads_what_each_tool_is_for(stage: Stage) -> None:
    """Pinned: a changed word makes an agent behave differently, and ends consents given to it."""
    await stage.task()
    await stage.work()

    (request,) = stage.engine.requests
    offers = [offer for offer in request.tools if offer.tool.name.endswith("_work")]
    assert {offer.tool.name: offer.description for offer in offers} == {
        "schedule_work": SCHEDULE_WORK,
        "stop_work": "Stop background work of this conversation, or of a task under it, for good.",
        "list_work": "List the background work of this conversation and of the tasks under it.",
    }
    assert {offer.tool.name: sorted(offer.parameters["properties"]) for offer in offers} == {
        "schedule_work": ["change", "notify", "separate", "title", "what", "when"],
        "stop_work": ["which"],
        "list_work": [],
    }
    schedule_work = offers[0]
    # Not every model's server follows references.
    assert "$ref" not in str(schedule_work.parameters)
    assert schedule_work.parameters["required"] == ["what", "when"]
    assert all(offer.tool.free and not offer.outside for offer in offers)
    assert [offer.read_only for offer in offers] == [False, False, True]
