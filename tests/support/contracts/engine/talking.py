"""Text, in pieces and across turns."""

import pytest

from backburner.core.errors import EngineFailed
from backburner.engine.endings import CUT, WITHHELD
from support.contracts.engine.harness import EngineHarness, ModelSubject
from support.model_api import CallTool, Finish, Say

#: Programs may ask a model to go on a few times.
MOST_ATTEMPTS = 10


async def text_is_streamed_in_pieces(subject: ModelSubject) -> None:
    subject.api.then(Say("One two three four.", pieces=4))

    result = await EngineHarness(subject).turn()

    assert len(result.texts) > 1
    assert "".join(result.texts) == result.end.text == "One two three four."


async def an_answer_that_was_cut_says_so(subject: ModelSubject) -> None:
    for _ in range(MOST_ATTEMPTS):
        subject.api.then(Say("One two"), Finish("length"))
    result = await EngineHarness(subject).turn()

    assert result.end.text.startswith("One two")
    assert result.end.text.endswith(f"\n\n{CUT}")
    assert "".join(result.texts) == result.end.text


async def an_answer_that_was_withheld_says_so(subject: ModelSubject) -> None:
    for _ in range(MOST_ATTEMPTS):
        subject.api.then(Say("I could"), Finish("filter"))
    result = await EngineHarness(subject).turn()

    assert result.end.text.startswith("I could")
    assert result.end.text.endswith(f"\n\n{WITHHELD}")
    assert "".join(result.texts) == result.end.text


async def an_answer_of_which_all_was_withheld_is_a_failure_that_says_so(
    subject: ModelSubject,
) -> None:
    for _ in range(MOST_ATTEMPTS):
        subject.api.then(Say(""), Finish("filter"))

    with pytest.raises(EngineFailed, match="withheld"):
        await EngineHarness(subject).turn()


async def text_before_and_after_a_call_is_separated(subject: ModelSubject) -> None:
    subject.api.then(Say("I shall look."), CallTool("look"))
    subject.api.then(Say("Found it."))

    result = await EngineHarness(subject).turn()

    assert "".join(result.texts) == result.end.text == "I shall look.\n\nFound it."


async def the_prompt_reaches_the_model(subject: ModelSubject) -> None:
    await EngineHarness(subject).turn('A "prompt" of\nour own: ö, @file, /clear.')

    (request,) = subject.api.requests
    assert request.holds('A "prompt" of\nour own: ö, @file, /clear.')
    # Only a turn with a schema ends with an outcome.
    assert not request.wants_outcome


async def a_later_turn_knows_an_earlier_one_of_its_session(subject: ModelSubject) -> None:
    subject.api.then(Say("The word is plum."))
    harness = EngineHarness(subject)
    await harness.turn("What is the word?")
    session_id, remembered, length = harness.session_id, len(harness.memory), harness.tokens

    await harness.turn("Say it again. " + "word " * 20_000)

    request = subject.api.requests[-1]
    assert request.holds("What is the word?")
    assert request.holds("The word is plum.")
    assert request.holds("Say it again.")
    assert harness.session_id == session_id is not None
    assert 0 < remembered < len(harness.memory)
    assert 0 < (length or 0) < (harness.tokens or 0)


async def a_session_knows_nothing_of_another(subject: ModelSubject) -> None:
    subject.api.then(Say("The word is plum."))
    one, other = EngineHarness(subject), EngineHarness(subject)
    await one.turn("What is the word?")

    await other.turn("Say it again.")

    request = subject.api.requests[-1]
    assert not request.holds("What is the word?")
    assert not request.holds("The word is plum.")
    assert one.session_id != other.session_id


async def an_entry_is_remembered_once(subject: ModelSubject) -> None:
    harness = EngineHarness(subject)
    sizes = list[int]()
    for _ in range(3):
        before = len(harness.memory)
        await harness.turn("The same words.")
        sizes.append(len(harness.memory) - before)

    assert sizes[-1] <= sizes[1], f"It adds more entries with every turn: {sizes}."
