"""An agent is offered the tools its work may use."""

from support.doubles.engine import Call
from support.people.tool_calls import WATCH, children, schedule
from support.requirements import requirement
from support.stage.stage import Stage


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
    # Any run may say what it is doing.
    assert shown[task.id] == ["list_work", "report_progress"]
    assert {"schedule_work", "stop_work", "list_work", "task_add"} <= set(shown[free.id])


@requirement("B-tool-scope")
async def test_work_of_a_restricted_conversation_has_the_same_restriction(stage: Stage) -> None:
    scope = ("list_work", "schedule_work")
    task = await stage.task(tools=scope)
    stage.engine.then(schedule(**WATCH))
    await stage.work()

    (child,) = children(stage, task)
    assert child.tools == scope
    (question,) = child.questions
    assert question.binds_to["shown"]["tools"] == list(scope)
