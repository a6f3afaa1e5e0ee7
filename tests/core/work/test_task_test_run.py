"""The question about all calls that a test run has not made."""

from dataclasses import replace

import pytest
from support.cases.policy_cases import SEND, command
from support.stage import make
from support.stage.make import NOON

from backburner.core import transitions
from backburner.core.conversation import Conversation, EndedAs, Kind, State, Status
from backburner.core.question import NO, YES, Purpose, Question, QuestionType
from backburner.core.tool_policy import (
    ALWAYS_HERE,
    SINGLE_USE_LIFETIME,
    ToolCall,
    call_digest,
    grants_given,
)
from backburner.core.work.task_test_run import (
    MAX_LISTED_CALLS,
    MAX_LISTED_CHARS,
    describe_list,
    is_same_work,
    list_binding,
    list_options,
    select_calls,
)

MAKE = command("make")


def listed(*calls: ToolCall) -> list[tuple[ToolCall, str]]:
    return [(call, "") for call in calls]


def asked(*calls: ToolCall) -> Question:
    return make.question(
        purpose=Purpose.APPROVAL,
        type=QuestionType.CHOICE,
        options=list_options(listed(*calls)),
        binds_to=list_binding(listed(*calls), make.OTHER),
    )


def test_calls_are_numbered_with_what_would_come_of_them() -> None:
    first, *lines = describe_list(
        [(SEND, "Two copies."), (MAKE, "")], unlisted=1_000, puts_files_back=True
    ).splitlines()

    assert first.startswith("May the task do this in its next runs?")
    assert lines == [
        '1. send {"copies":2,"to":"ann@example.com"}',
        "Two copies.",
        "2. run_command:",
        "    make",
        "'always here' allows these only once: 2.",
        "Not listed: 1,000 more. Each will ask when it is to be made.",
        "Files that other programs obey were changed, and put back. The same change asks again.",
    ]


@pytest.mark.parametrize("call", [SEND, MAKE])
def test_a_list_of_one_kind_needs_no_exceptions(call: ToolCall) -> None:
    text = describe_list(listed(call), unlisted=0, puts_files_back=False)

    assert len(text.splitlines()) == (2 if call is SEND else 3)


def test_always_here_is_an_answer_if_it_can_be_said_of_one_call() -> None:
    assert list_options(listed(SEND, MAKE)) == (YES, ALWAYS_HERE, NO)
    assert list_options(listed(MAKE)) == (YES, NO)


def test_a_question_lists_as_many_calls_as_can_be_read() -> None:
    short, long = listed(SEND) * 30, [(SEND, "x" * (MAX_LISTED_CHARS // 2))] * 3

    assert select_calls(short) == short[:MAX_LISTED_CALLS]
    assert select_calls(long) == long[:1]
    assert select_calls([(SEND, "x" * 2 * MAX_LISTED_CHARS)]) != []
    assert select_calls([]) == []


def test_a_grant_lasts_where_it_can_and_is_for_one_call_elsewhere() -> None:
    lasting, once = grants_given(asked(SEND, MAKE), ALWAYS_HERE, now=NOON)

    assert (lasting.call, lasting.words, lasting.expires_at) == (None, (), None)
    assert (once.call, once.words) == (call_digest(MAKE), ())
    assert once.expires_at == NOON + SINGLE_USE_LIFETIME
    each = grants_given(asked(SEND, MAKE), YES, now=NOON)
    assert [grant.call for grant in each] == [call_digest(SEND), call_digest(MAKE)]
    assert grants_given(asked(SEND, MAKE), NO, now=NOON) == ()


@pytest.mark.parametrize("answer", [YES, ALWAYS_HERE, NO])
def test_an_answer_starts_no_run_of_a_test_run_that_has_ended(answer: str) -> None:
    question = asked(SEND)
    job = make.conversation(
        kind=Kind.JOB,
        status=Status.WAITING_INPUT,
        schedule=None,
        next_run_at=None,
        ended_as=EndedAs.COMPLETED,
        questions=(question,),
    )

    step = transitions.answer(job, question.id, answer, now=NOON)

    assert (step.conversation.status, step.conversation.questions) == (Status.ACTIVE, ())
    assert (step.inbox, step.grants, step.answered) == ((), (), ((question.id, answer),))


def test_a_test_run_is_of_the_same_work_until_prompt_or_tools_change() -> None:
    task = make.conversation(state=State(context={"prompt": "Look.", "place": "x"}))
    context = {"prompt": "Look.", "place": "x", "description": ""}
    job = replace(task, id=make.OTHER, kind=Kind.JOB, state=State(context=context))

    def differs(**changes: object) -> bool:
        changed: Conversation = replace(task, **changes)  # type: ignore[arg-type]
        return not is_same_work(changed, job)

    assert not differs()
    assert not differs(title="Other", run_count=3)
    assert differs(tools=("look",))
    assert differs(connections=("mail",))
    assert differs(state=State(context={"prompt": "Send.", "place": "x"}))
    assert differs(state=State(context={"prompt": "Look.", "place": "y"}))
