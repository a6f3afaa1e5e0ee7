"""Memories in prompts, and their bounds."""

from dataclasses import replace

from support.stage import make

from backburner.core import prompt
from backburner.core.conversation import Kind, State
from backburner.core.run import ItemKind


def test_the_topic_of_a_run_is_its_messages_its_brief_and_its_title() -> None:
    said = make.item(content={"text": "How is CI?"})
    answered = make.item(kind=ItemKind.ANSWER, content={"prompt": "Which?", "answer": "Main."})
    work = make.conversation(title="Watch", state=State(context={"prompt": "Look at it."}))

    assert prompt.topic_of(work, [said, answered]) == "How is CI? Main. Look at it. Watch"
    assert prompt.topic_of(replace(work, kind=Kind.DISCOVERY), []) == "Watch"


def test_memories_are_shown_as_far_as_they_fit() -> None:
    long, short = make.memory(key="long", text="x" * 500), make.memory(key="short\nkey", text="y")

    assert prompt.select_memories([long, long, short], limit=200) == [long, short]
    assert prompt.format_memories([short], limit=200) == "- short key: y"
    assert prompt.prepend_memories([], "# The rest") == "# The rest"


def test_memories_with_outside_text_are_quoted_as_data() -> None:
    memory = make.memory(outside=True)

    assert prompt.format_memories([memory]).startswith("<outside ")
    assert prompt.has_outside_text([], [], [memory])
    assert not prompt.has_outside_text([], [], [make.memory()])
