"""One course of events: disorder for a while, then calm until everything has settled."""

from datetime import timedelta

from sqlalchemy.exc import IntegrityError

from backburner.core import transitions
from backburner.core.conversation import State
from backburner.core.schedule import Immediate
from support.simulator import actors
from support.simulator.invariants import check, check_settled, require
from support.simulator.world import LEASE, Violation, World

STEPS = 150


def simulate(seed: int, steps: int = STEPS) -> None:
    """Run the course of one seed; raises `Violation` where the protocol broke a promise."""
    world = World(seed)
    try:
        actors.populate(world)
        for world.step in range(steps):
            _happen(world)
            check(world)
        _settle(world)
        check_settled(world)
    except IntegrityError as error:
        raise Violation(f"the database refused what was to be written: {error.orig}") from error
    except Violation as violation:
        raise Violation(f"seed {seed}, step {world.step}: {violation}") from violation
    finally:
        world.close()


def _happen(world: World) -> None:
    dice = world.random.random()
    if dice < 0.55:
        actors.work(world)
    elif dice < 0.75:
        actors.person(world)
    elif dice < 0.85:
        actors.rescue(world)
    elif dice < 0.9:
        actors.deliver(world)
    elif dice < 0.98:
        world.clock.pass_by(timedelta(seconds=world.random.choice([1, 5, 15, 40, 200])))
    else:
        world.clock.jump(timedelta(minutes=world.random.choice([-60, -5, 5, 60])))


def _settle(world: World) -> None:
    """Let everybody who is left finish: no more faults, no more wishes, all questions answered."""
    for worker in world.workers:
        worker.forget()
    world.clock.pass_by(2 * LEASE)
    while world.holders:
        before = len(world.holders)
        actors.rescue(world)
        require(len(world.holders) < before, "a dead holder's turn was never freed")
    _reopen_all(world)
    # The wall clock may have been set back: what waits until a time has to see it come.
    world.clock.pass_by(world.clock.latest - world.clock.now + timedelta(hours=3))
    for _ in range(400):
        if not (_answer_all(world) or _work_calmly(world) or actors.deliver(world, calmly=True)):
            return
    raise Violation("it never comes to rest")


def _reopen_all(world: World) -> None:
    """Open what was archived and give it something to do: nothing of before may be in the way."""
    work = State(context={"prompt": "One thing more."})
    for user, which in world.conversations:
        if actors.change(
            world,
            user,
            which,
            lambda c, tx: transitions.reopen(c, proposed=None, now=tx.now),
            "reopen",
        ):
            actors.change(
                world,
                user,
                which,
                lambda c, tx: transitions.set_schedule(c, Immediate(), now=tx.now, state=work),
                "work",
            )
            world.undisturbed.pop(which, None)


def _work_calmly(world: World) -> bool:
    worker = next((one for one in world.workers if one.claim is not None), world.workers[0])
    if worker.claim is None:
        actors.claim(world, worker)
    if worker.claim is None:
        return False
    actors.prepare(world, worker)
    actors.end(world, worker, actors.commit_work(world, worker, calmly=True))
    check(world)
    return True


def _answer_all(world: World) -> bool:
    """Answer what is asked, and let what is paused go on, so that nothing has a reason to wait."""
    moved = False
    for user, which in world.conversations:
        moved |= actors.change(
            world, user, which, lambda c, tx: transitions.resume(c, now=tx.now), f"resume:{which}"
        )
        ((open_questions,),) = world.rows(
            "SELECT count(*) FROM questions WHERE conversation_id = ? AND closed_at IS NULL", which
        )
        for _ in range(open_questions):
            moved |= actors.change(
                world,
                user,
                which,
                lambda c, tx: transitions.answer(
                    c, c.questions[0].id, actors.fitting(c.questions[0].options), now=tx.now
                ),
                f"answer:{which}",
            )
    return moved
