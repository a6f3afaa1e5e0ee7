"""`backburner questions` and `answer`."""

from collections.abc import Callable
from typing import Any

from support.programs.cli_server import Call, wait_for


def test_a_question_is_listed_and_answered_once(ask: Callable[..., Any], talk: Call) -> None:
    said = ask("say", "--no-wait", "every 2 seconds ask me whether to go on")
    conversation_id = said["conversation_id"]

    def open_questions() -> Any:
        return [one for one in ask("questions") if one["conversation_id"] == conversation_id]

    (first,) = wait_for(open_questions)
    listed = talk("questions")
    answered = talk("answer", first["id"][:12], "yes")
    # The answer starts the next run, which asks again.
    wait_for(lambda: [one for one in open_questions() if one["id"] != first["id"]])
    late = talk("answer", first["id"], "no")
    talk("cancel", conversation_id)

    assert listed.out[0].split() == ["ID", "PURPOSE", "ASKED", "QUESTION", "OPTIONS"]
    assert any(first["id"][:12] in line for line in listed.out)
    assert (answered.code, answered.out) == (0, ["Answered."])
    assert late.code == 4
    assert open_questions() == []
