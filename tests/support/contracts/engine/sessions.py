"""Sessions: what an engine with a memory of its own promises of it."""

from backburner.core.errors import SessionGone
from support.contracts.engine.trial import Subject, Trial


async def a_session_goes_on_under_its_name(subject: Subject) -> None:
    trial = Trial(subject)
    await trial.turn("Hello!")
    first = trial.session_id
    remembered = len(trial.memory)

    heard = await trial.turn("Hello again!")

    assert heard.ended
    assert trial.session_id == first is not None
    assert 0 < remembered < len(trial.memory)


async def two_sessions_have_two_names(subject: Subject) -> None:
    one, other = Trial(subject), Trial(subject)
    await one.turn()
    await other.turn()

    assert one.session_id != other.session_id


async def a_session_of_which_nothing_is_left_works_on_or_is_gone(subject: Subject) -> None:
    trial = Trial(subject)
    await trial.turn("Hello!")
    trial.memory.clear()
    try:
        heard = await trial.turn("Hello again!")
    except SessionGone:
        fresh = Trial(subject)
        heard = await fresh.turn("Hello again!")

    assert heard.ended
