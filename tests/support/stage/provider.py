"""A model's provider that has trouble, and time that passes meanwhile."""

import asyncio
from datetime import timedelta

from backburner.actions import steps
from backburner.actions.origin import Origin
from backburner.actions.work import jobs
from backburner.core import transitions
from backburner.core.conversation import Conversation
from backburner.core.errors import ModelAccessDenied, ModelUnavailable
from backburner.core.retry import Outage
from backburner.core.run import Failure, FailureKind
from backburner.core.schedule import Interval
from backburner.core.transitions import Step
from backburner.core.transitions.step import FollowerEvent
from backburner.ports import TurnRequest, Tx
from support.doubles.clock import SetClock
from support.doubles.engine import End, Fail, Spend, Wait
from support.stage.make import MATE, NOON
from support.stage.stage import LEASE, Stage

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
EVERY_HOUR = Interval(HOUR, anchor=NOON)
DOWN = Fail(ModelUnavailable("The model is overloaded."))
#: The provider asks for an hour, so that the model is tried in each.
DOWN_FOR_AN_HOUR = Fail(ModelUnavailable("The model is overloaded.", retry_after=HOUR))
DENIED = Fail(ModelAccessDenied("The key was refused.", hint="Enter another.", permanent=True))
BACK = "The model is available again. Background work that waited for it continues."


class Provider:
    """Of a model that fails until it is repaired."""

    def __init__(self, trouble: Fail = DOWN) -> None:
        self.trouble: Fail | None = trouble

    def __call__(self, _request: TurnRequest) -> list[Fail | End]:
        return [self.trouble or End({"complete": True, "message": "Done."})]


def outages(stage: Stage) -> list[Outage]:
    return list(stage.database.run(lambda tx: tx.outages.all()))


async def pass_time(stage: Stage, clock: SetClock, length: timedelta, step: timedelta) -> None:
    """Let a worker work and report while time passes."""
    until = clock.now + length
    while clock.now < until:
        clock.advance(step)
        await stage.work()
        await stage.outage_reporter.run_once()


def set_back(stage: Stage, clock: SetClock, by: timedelta) -> None:
    """Put a clock right that ran ahead, and what it has written."""
    clock.now -= by
    stage.database.run(
        lambda tx: tx.queue.correct_times(lease=LEASE, delivery_lease=MINUTE, jumped=True)
    )


async def start_job(stage: Stage) -> Conversation:
    chat = await stage.chat()
    wish = jobs.JobRequest(description="One", prompt="Look.")
    (started,) = await jobs.start(stage.deps, Origin(chat.user_id, chat.id), [wish])
    return stage.database.run(lambda tx: tx.conversations.load(chat.user_id, started.id))


async def let_probe_hang(stage: Stage, clock: SetClock, *first: Spend) -> asyncio.Event:
    """Let a probe begin and hang until the event is set, while the worker renews its lease."""
    hung = asyncio.Event()
    clock.advance(max(outages(stage)[0].until - clock.now, timedelta()))
    stage.engine.then(*first, Wait(hung), DOWN)
    await stage.take_up()
    for _ in range(4 * MINUTE // (LEASE / 3)):
        clock.advance(LEASE / 3)
        await stage.renew()
    return hung


async def meet_own_trouble(stage: Stage, clock: SetClock) -> None:
    """Let a run meet trouble again after the model has worked for somebody else."""
    await stage.work()
    clock.advance(MINUTE)
    stage.database.run(lambda tx: tx.outages.end("scripted"))
    await stage.work()


async def keep_in_outage(stage: Stage) -> None:
    """Let work of another user try the model."""
    stage.user(MATE)
    await stage.task(EVERY_HOUR, user=MATE)
    await stage.work()


def note_trouble(stage: Stage) -> None:
    failure = Failure(FailureKind.UNAVAILABLE, "It is down.", retry_after=HOUR)
    stage.database.run(lambda tx: tx.outages.note("scripted", failure, probed=True))


async def wait_for_jobs(stage: Stage, length: timedelta) -> None:
    """Let a run begin, and wait for its jobs."""
    stage.engine.then(Wait())
    await stage.take_up()
    turn = stage.only_run().claim.turn

    def hand_back(tx: Tx) -> None:
        step = Step(conversation=tx.turns.hold(turn))
        tx.turns.hand_back(turn, step, until=tx.now + length)

    stage.database.run(hand_back)
    stage.kill()


def stop_following(stage: Stage, task: Conversation) -> None:
    """Remove the work that a task runs after: it gets its last event."""

    def stop(tx: Tx) -> None:
        before = tx.conversations.lock(task.user_id, task.id)
        steps.save(tx, transitions.apply_follower_event(before, FollowerEvent.STOPPED))

    stage.database.run(stop)


def receive_event(stage: Stage, task: Conversation) -> None:
    def receive(tx: Tx) -> None:
        before = tx.conversations.lock(task.user_id, task.id)
        steps.save(tx, transitions.receive_event(before, {"source": "after", "signal": "ended"}))

    stage.database.run(receive)


def ask_for_run(stage: Stage, task: Conversation) -> None:
    def ask(tx: Tx) -> None:
        steps.save(tx, transitions.run_now(tx.conversations.lock(task.user_id, task.id)))

    stage.database.run(ask)
