"""What could not be sent is a `ChannelFailed` that tells what to do next, and nothing else."""

from datetime import timedelta

from backburner.core.errors import ChannelFailed, TargetGone
from support.contracts.channel.subject import (
    PASSING,
    PERMANENT,
    Subject,
    Trouble,
    failure,
    message,
)

MINUTES = timedelta(minutes=7)


async def trouble_that_passes_is_said_to_pass_and_the_next_attempt_arrives(
    subject: Subject,
) -> None:
    for trouble in PASSING:
        before = len(subject.received())
        subject.trouble(trouble)

        error = await failure(subject)

        assert not error.permanent, trouble
        assert len(subject.received()) == before, trouble
        await subject.channel.send(message(subject))
        assert len(subject.received()) == before + 1, trouble


async def the_time_that_the_other_side_asks_for_is_passed_on(subject: Subject) -> None:
    subject.trouble(Trouble.BUSY, retry_after=MINUTES)

    error = await failure(subject)

    assert (error.permanent, error.retry_after) == (False, MINUTES)


async def trouble_without_a_time_has_none(subject: Subject) -> None:
    subject.trouble(Trouble.BUSY)

    assert (await failure(subject)).retry_after is None


async def what_a_retry_cannot_help_is_said_to_be_permanent(subject: Subject) -> None:
    # A target that is gone stays so.
    for trouble in sorted(PERMANENT, key=lambda one: one is Trouble.GONE):
        subject.trouble(trouble)

        error = await failure(subject)

        assert error.permanent, trouble
        assert isinstance(error, TargetGone) == (trouble is Trouble.GONE), trouble
    assert subject.received() == []


async def an_answer_that_nobody_understands_is_a_failure(subject: Subject) -> None:
    subject.trouble(Trouble.NONSENSE)

    await failure(subject)


async def an_unknown_target_is_a_permanent_failure(subject: Subject) -> None:
    for target in ("", "nobody", "../../etc/passwd", "\0", "x" * 5000):
        error = await failure(subject, message(subject, target=target))

        assert error.permanent, target


async def another_side_that_cannot_be_reached_is_trouble_that_passes(subject: Subject) -> None:
    await subject.shut_down()

    assert not (await failure(subject)).permanent


async def no_failure_tells_a_secret(subject: Subject) -> None:
    errors = list[ChannelFailed]()
    for trouble in sorted(set(Trouble) - {Trouble.SILENT}, key=lambda one: one is Trouble.GONE):
        subject.trouble(trouble)
        errors.append(await failure(subject))
    await subject.shut_down()
    errors.append(await failure(subject))

    for error in errors:
        assert error.message
        for secret in subject.secrets:
            assert secret not in f"{error} {error!r} {error.__cause__!r}"
