"""What is remembered is a part of what the agent is told, and bounded."""

from dataclasses import replace

from support.stage import make

from backburner.core import prompt
from backburner.core.conversation import Kind, State
from backburner.core.run import ItemKind


def test_a_run_is_about_what_was_said_and_what_it_is_for() -> None:
    said = make.item(content={"text": "How is CI?"})
    answered = make.item(kind=ItemKind.ANSWER, content={"prompt": "Which?", "answer": "Main."})
    work = make.conversation(title="Watch", state=State(context={"prompt": "Look at it."}))

    assert prompt.about(work, [said, answered]) == "How is CI? Main. Look at it. Watch"
    assert prompt.about(replace(work, kind=Kind.DISCOVERY), []) == "Watch"


def test_memories_are_shown_as_far_as_they_fit() -> None:
    long, short = make.memory(key="long", text="x" * 500), make.memory(key="short\nkey", text="y")

    assert prompt.recalled([long, long, short], room=200) == [long, short]
    assert prompt.remembered([short], room=200) == "- short key: y"
    assert prompt.with_memories([], "# The rest") == "# The rest"


def test_memories_that_may_hold_words_of_others_are_fenced() -> None:
    memory = make.memory(outside=True)

    assert prompt.remembered([memory]).startswith("<outside ")
    assert prompt.holds_outside([], [], [memory])
    assert not prompt.holds_outside([], [], [make.memory()])
