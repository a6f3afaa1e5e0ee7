"""Calls in doubt, receipts, and what a repeated run is told about earlier calls."""

from dataclasses import replace
from typing import Any

from support.stage import make
from support.stage.make import NOON

from backburner.core import tool_journal, transitions
from backburner.core.commands import Cage
from backburner.core.content.file import FileReference
from backburner.core.conversation import State, Status
from backburner.core.ids import CallId
from backburner.core.prompt import quote_outside
from backburner.core.question import Purpose
from backburner.core.run import RunKind
from backburner.core.tool_journal import JournalEntry
from backburner.core.tool_policy import (
    HAND_OVER_TOOL,
    OWN_SERVER,
    Allow,
    Ask,
    Tool,
    ToolCall,
    call_digest,
    decide,
)
from backburner.core.transitions import HAPPENED, LEAVE, REPEAT, Step
from backburner.core.transitions.step import system_message

CALL = ToolCall(Tool(server="mail", name="send", definition="d"), {"to": "Ann"})


def entry(**changes: Any) -> JournalEntry:
    made = JournalEntry(
        id=CallId("t_call"),
        run_id=make.RUN,
        server="mail",
        tool="send",
        definition="d",
        arguments=CALL.arguments,
        digest=call_digest(CALL),
        read_only=False,
        done=True,
        result="Sent.",
    )
    return replace(made, **changes)


def test_only_calls_that_may_have_had_an_effect_are_in_doubt() -> None:
    unknown = entry(done=False)
    harmless = [entry(done=False, read_only=True), entry(done=False, cage=Cage.WORK)]

    assert tool_journal.calls_in_doubt([entry(), unknown, *harmless]) == [unknown]


def test_the_owner_is_asked_about_each_call_in_doubt() -> None:
    here = make.conversation(status=Status.BACKGROUND)
    calls = [entry(done=False), entry(id=CallId("t_second"), done=False)]
    said = Step(conversation=here, messages=(system_message("First this."),))
    step = tool_journal.ask_about(said, calls, RunKind.BACKGROUND, now=NOON)

    assert [question.binds_to["call_id"] for question in step.asked] == ["t_call", "t_second"]
    assert step.conversation.status is Status.WAITING_INPUT
    assert step.messages[0] == said.messages[0]
    assert len(step.notices) == 2


def test_the_name_of_a_tool_of_others_is_in_quotes_where_it_could_be_mistaken() -> None:
    call = entry(done=False, tool="send (it was not made)")
    question = tool_journal.doubt_question(call, RunKind.BACKGROUND, now=NOON)

    assert question.prompt.startswith(
        'I was interrupted while calling mail/"send (it was not made)", and the call may'
    )


def test_a_run_that_was_stopped_tells_what_it_had_made_if_its_agent_does_not_know() -> None:
    step = Step(conversation=make.conversation())
    told = tool_journal.tell_about(step, [], made=[entry(), entry(tool="mark")])

    assert [message.content for message in told.messages] == [
        'Before it was stopped, it had made these calls: send {"to":"Ann"}; mark {"to":"Ann"}.'
    ]
    assert tool_journal.tell_about(step, []) == step


def test_an_agent_would_repeat_what_was_made_and_is_not_in_its_session() -> None:
    made = entry()
    harmless = [
        entry(read_only=True),
        entry(repeatable=True),
        entry(cage=Cage.WORK),
        entry(failed=True),
        entry(done=False),
    ]
    known = entry(id=CallId("t_known"))

    assert tool_journal.find_untold([made, *harmless, known], {made.id}) == [made]


def test_an_identical_call_is_answered_once_by_each_that_was_made() -> None:
    first, second = entry(), entry(id=CallId("t_second"))
    others = [
        entry(id=CallId("t_1"), done=False),
        entry(id=CallId("t_2"), failed=True),
        entry(id=CallId("t_3"), read_only=True),
        entry(id=CallId("t_4"), digest="another"),
    ]
    made = [*others, first, second]

    assert tool_journal.find_receipt(call_digest(CALL), made, used=()) == first
    assert tool_journal.find_receipt(call_digest(CALL), made, used={first.id}) == second
    assert tool_journal.find_receipt(call_digest(CALL), made, used={first.id, second.id}) is None


def test_calls_that_had_an_effect_are_described_to_a_new_attempt() -> None:
    made = [entry(), entry(read_only=True), entry(done=False), entry(failed=True)]

    (described,) = tool_journal.describe_done_calls(made)
    assert described == f'send {{"to":"Ann"}} returned: {quote_outside("send", "Sent.")}'


def test_interrupted_calls_that_changed_only_files_of_the_workspace_are_described() -> None:
    caged = entry(cage=Cage.WORK, done=False)
    others = [replace(caged, done=True), replace(caged, read_only=True), replace(caged, cage=None)]

    assert tool_journal.describe_interrupted_calls([*others, caged]) == ['send {"to":"Ann"}']


def test_descriptions_of_earlier_calls_are_truncated() -> None:
    (line,) = tool_journal.describe_done_calls(
        [entry(arguments={"to": "x" * 10_000}, result="y" * 10_000)]
    )

    assert len(line) < 2 * tool_journal.MAX_RECEIPT_CHARS + 200


def test_the_answer_do_it_again_approves_only_that_call() -> None:
    question = tool_journal.doubt_question(entry(done=False), RunKind.BACKGROUND, now=NOON)
    assert (question.purpose, question.options) == (Purpose.IN_DOUBT, (HAPPENED, REPEAT, LEAVE))
    waiting = transitions.ask_owner(make.conversation(), question).conversation

    again = transitions.answer(waiting, question.id, REPEAT, now=NOON)

    judged = decide(CALL, again.grants, allowed=None, in_doubt=False, now=NOON)
    assert isinstance(judged, Allow)
    assert judged.uses == again.grants[0].id
    other = ToolCall(CALL.tool, {"to": "Bob"})
    assert isinstance(decide(other, again.grants, allowed=None, in_doubt=False, now=NOON), Ask)


def test_a_call_in_doubt_is_named_with_its_connection() -> None:
    ours = entry(done=False, server=OWN_SERVER, tool="task_add")
    of_others = tool_journal.doubt_question(entry(done=False), RunKind.REPLY, now=NOON)
    own = tool_journal.doubt_question(ours, RunKind.REPLY, now=NOON)

    assert of_others.prompt.startswith("I was interrupted while calling mail/send, and ")
    assert own.prompt.startswith("I was interrupted while calling task_add, and ")


def test_a_call_in_doubt_shows_what_cannot_be_seen_in_its_arguments() -> None:
    hiding = entry(done=False, arguments={"to": "Ann\u202e\ufe01\u3164"})

    prompt = tool_journal.doubt_question(hiding, RunKind.REPLY, now=NOON).prompt

    assert prompt.endswith('{"to":"Ann\\u202e\\ufe01\\u3164"}')


def test_calls_in_doubt_of_a_cancelled_run_are_told_and_not_asked_about() -> None:
    nothing = Step(conversation=make.conversation())
    assert tool_journal.tell_about(nothing, []) == nothing

    told = tool_journal.tell_about(nothing, [entry(done=False)])

    (message,) = told.messages
    assert message.content == (
        "It was stopped during a call of mail/send, which may or may not have happened."
    )
    assert told.asked == ()


def test_any_other_answer_allows_nothing() -> None:
    question = tool_journal.doubt_question(entry(done=False), RunKind.REPLY, now=NOON)
    waiting = transitions.ask_owner(make.conversation(), question).conversation

    for said in (HAPPENED, LEAVE):
        step = transitions.answer(waiting, question.id, said, now=NOON)
        assert step.grants == ()
        assert [item.content["answer"] for item in step.inbox] == [said]


def test_a_call_that_may_be_repeated_is_not_in_doubt() -> None:
    assert tool_journal.calls_in_doubt([entry(done=False, repeatable=True)]) == []


def test_only_our_own_tool_hands_over_files() -> None:
    file = FileReference(digest="d", size=1, media_type="text/plain", name="a.txt")
    handed = entry(server=OWN_SERVER, tool=HAND_OVER_TOOL, files=(file,))
    others = [
        entry(server=OWN_SERVER, tool=HAND_OVER_TOOL),
        entry(server=OWN_SERVER, tool="read", files=(file,)),
        entry(tool=HAND_OVER_TOOL, files=(file,)),
    ]

    assert tool_journal.find_hand_overs([*others, handed]) == [handed]


def test_calls_whose_work_was_stopped_are_undone() -> None:
    child = make.conversation(id=make.OTHER)
    own = make.conversation(state=State(context={"prompt": "Stretch."}))
    ours = {"server": OWN_SERVER, "tool": "schedule_work"}
    made = entry(**ours, result=f"Scheduled as 'x' ({child.id}).")
    here = entry(**ours, arguments={"what": "Stretch."}, result="Scheduled.")
    others = [
        entry(**ours, arguments={"what": "Look."}, result="Scheduled."),
        entry(server=OWN_SERVER, tool="save_memory", arguments={"what": "Stretch."}),
        # The words of a server say nothing about our work.
        entry(result=f"Sent to {child.id}."),
        replace(made, failed=True),
        replace(made, done=False, result=None),
        entry(**ours, arguments={}, result=None),
    ]

    assert tool_journal.find_undone([made, here, *others], [child, own]) == [made, here]
    assert tool_journal.find_undone([made, here, *others], []) == []
