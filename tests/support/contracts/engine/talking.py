"""Text, in pieces and across turns."""

from support.contracts.engine.harness import EngineHarness, ModelSubject
from support.model_api import CallTool, Say


async def text_is_streamed_in_pieces(subject: ModelSubject) -> None:
    subject.api.then(Say("One two three four.", pieces=4))

    result = await EngineHarness(subject).turn()

    assert len(result.texts) > 1
    assert "".join(result.texts) == result.end.text == "One two three four."


async def text_before_and_after_a_call_is_separated(subject: ModelSubject) -> None:
    subject.api.then(Say("I shall look."), CallTool("look"))
    subject.api.then(Say("Found it."))

    result = await EngineHarness(subject).turn()

    assert "".join(result.texts) == result.end.text == "I shall look.\n\nFound it."


async def the_prompt_reaches_the_model(subject: ModelSubject) -> None:
    await EngineHarness(subject).turn('A "prompt" of\nour own: ö, @file, /clear.')

    (request,) = subject.api.requests
    assert request.holds('A "prompt" of\nour own: ö, @file, /clear.')


async def a_later_turn_knows_an_earlier_one(subject: ModelSubject) -> None:
    subject.api.then(Say("The word is plum."))
    harness = EngineHarness(subject)
    await harness.turn("What is the word?")

    await harness.turn("Say it again.")

    request = subject.api.requests[-1]
    assert request.holds("What is the word?")
    assert request.holds("The word is plum.")
    assert request.holds("Say it again.")


async def an_engine_remembers_only_what_its_memory_holds(subject: ModelSubject) -> None:
    subject.api.then(Say("The word is plum."))
    await EngineHarness(subject).turn("What is the word?")

    await EngineHarness(subject).turn("Say it again.")

    request = subject.api.requests[-1]
    assert not request.holds("What is the word?")
    assert not request.holds("The word is plum.")


async def an_entry_is_remembered_once(subject: ModelSubject) -> None:
    harness = EngineHarness(subject)
    sizes = list[int]()
    for _ in range(4):
        before = len(harness.memory)
        await harness.turn("The same words.")
        sizes.append(len(harness.memory) - before)

    assert sizes[-1] <= sizes[1], f"It adds more entries with every turn: {sizes}."


async def an_engine_estimates_the_length_of_its_session(subject: ModelSubject) -> None:
    harness = EngineHarness(subject)
    await harness.turn("Hello!")
    short = harness.tokens

    await harness.turn("word " * 20_000)

    assert short is not None
    assert harness.tokens is not None
    assert short < harness.tokens
