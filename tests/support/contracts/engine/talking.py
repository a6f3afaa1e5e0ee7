"""Words, in pieces and across turns."""

from support.contracts.engine.trial import ModelSubject, Trial
from support.model_api import CallTool, Say


async def words_come_in_pieces(subject: ModelSubject) -> None:
    subject.api.then(Say("One two three four.", pieces=4))

    heard = await Trial(subject).turn()

    assert len(heard.said) > 1
    assert "".join(heard.said) == heard.end.text == "One two three four."


async def words_before_and_after_a_call_are_kept_apart(subject: ModelSubject) -> None:
    subject.api.then(Say("I shall look."), CallTool("look"))
    subject.api.then(Say("Found it."))

    heard = await Trial(subject).turn()

    assert "".join(heard.said) == heard.end.text == "I shall look.\n\nFound it."


async def the_prompt_reaches_the_model(subject: ModelSubject) -> None:
    await Trial(subject).turn('A "prompt" of\nour own: ö, @file, /clear.')

    (request,) = subject.api.requests
    assert request.holds('A "prompt" of\nour own: ö, @file, /clear.')


async def a_later_turn_knows_an_earlier_one(subject: ModelSubject) -> None:
    subject.api.then(Say("The word is plum."))
    trial = Trial(subject)
    await trial.turn("What is the word?")

    await trial.turn("Say it again.")

    request = subject.api.requests[-1]
    assert request.holds("What is the word?")
    assert request.holds("The word is plum.")
    assert request.holds("Say it again.")


async def nothing_is_remembered_but_what_it_was_told_to_remember(subject: ModelSubject) -> None:
    subject.api.then(Say("The word is plum."))
    await Trial(subject).turn("What is the word?")

    await Trial(subject).turn("Say it again.")

    request = subject.api.requests[-1]
    assert not request.holds("What is the word?")
    assert not request.holds("The word is plum.")


async def what_was_remembered_is_remembered_only_once(subject: ModelSubject) -> None:
    trial = Trial(subject)
    sizes = list[int]()
    for _ in range(4):
        before = len(trial.memory)
        await trial.turn("The same words.")
        sizes.append(len(trial.memory) - before)

    assert sizes[-1] <= sizes[1], f"It remembers more with every turn: {sizes}."


async def it_says_about_how_long_its_session_is(subject: ModelSubject) -> None:
    trial = Trial(subject)
    await trial.turn("Hello!")
    short = trial.tokens

    await trial.turn("word " * 20_000)

    assert short is not None
    assert trial.tokens is not None
    assert short < trial.tokens
