"""Who acts in the simulated world: workers, people, the outside, the rescuer, the deliverer."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from itertools import pairwise

from backburner.core import transitions
from backburner.core.conversation import Author, Conversation, Destination, State
from backburner.core.errors import Conflict, Fenced
from backburner.core.ids import (
    ConversationId,
    UserId,
    derive_question_id,
    new_conversation_id,
    new_message_id,
    new_user_id,
)
from backburner.core.outcome import Complete, Continue, NeedsInput, Outcome
from backburner.core.question import NewQuestion, Purpose, Question, QuestionType
from backburner.core.run import Failure, FailureKind, RunEnding, RunKind, RunStatus, Turn
from backburner.core.schedule import Event, Immediate, Interval, Scheduled
from backburner.core.transitions import Brief, Step
from backburner.core.work import jobs
from backburner.ports import Claim, Claimer
from backburner.store.queue import claimable
from backburner.store.records.waits import Waits
from backburner.store.tx import Tx
from support.people.users import add_user
from support.simulator.invariants import claimable_work, require, someone_waits, whose_turn
from support.simulator.world import CAP, LEASE, START, Worker, World

OUTSIDE = (Destination("simulated", "somebody"),)
SESSION = "session"
#: Longer than a run waits for anything that happens here.
LONG = timedelta(hours=2)
INPUT = NewQuestion(type=QuestionType.INPUT, prompt="Which one?")


def populate(world: World) -> None:
    """Put three users with a chat and a few kinds of work each into the world."""

    def birth(tx: Tx) -> None:
        for number in range(3):
            user = new_user_id()
            # Ids are chance: nothing may hang on their order, or a seed would not repeat.
            joined_at = tx.now - timedelta(days=1 + number)
            add_user(tx, user, name=f"user {number}", now=joined_at)
            world.users.append(user)
            for step in _households(user, number):
                tx.conversations.add(step, cause="birth")
                which = step.conversation.id
                world.conversations.append((user, which))
                if isinstance(step.conversation.schedule, Interval):
                    world.undisturbed[which] = START

    world.db.run(birth)


def _households(user: UserId, number: int) -> list[Step]:
    schedules = (
        Interval(timedelta(minutes=2 + number), anchor=START),
        Scheduled(START + timedelta(minutes=3)),
        Event("file", {}),
        Immediate(),
    )
    chat = transitions.start_chat(new_conversation_id(), user, now=START)
    tasks = [
        transitions.start_task(
            new_conversation_id(),
            user,
            Brief(title="work", prompt="Do it.", schedule=schedule, reports_to=OUTSIDE),
            now=START,
        )
        for schedule in schedules
    ]
    below = chat.conversation.id
    what = Brief(
        title="job",
        prompt="Do it.",
        schedule=Immediate(),
        parent_id=below,
        root_id=below,
        created_by=Author.AGENT,
    )
    job = transitions.start_job(new_conversation_id(), user, what, now=START)
    return [chat, *tasks, job]


def work(world: World) -> None:
    """Let one worker take its next step."""
    worker = world.random.choice(world.workers)
    if worker.stalled_until > world.step:
        return
    if worker.claim is None:
        claim(world, worker)
    elif worker.loaded is None:
        prepare(world, worker)
    else:
        _go_on(world, worker)


def claim(world: World, worker: Worker) -> None:
    """Claim a reply, else work; nothing claimed has to mean that there was nothing."""
    taken = world.transact(lambda tx: tx.queue.claim_reply(_claimer(worker)))
    if taken is not None:
        _hold(world, worker, taken)
        return
    require(not someone_waits(world), "somebody waits and got no reply")
    # One process has several seats, and may claim for all in one transaction.
    others = [one for one in world.workers if one is not worker and _is_idle(world, one)]
    seats = [worker, *(others if world.chance(0.3) else ())]
    taken_at_once = world.transact(partial(_claim_each, world, seats))
    for seat, one in zip(seats, taken_at_once, strict=False):
        _hold(world, seat, one)
    if worker.claim is None:
        require(not claimable_work(world), "work could be claimed and was not")


def _is_idle(world: World, worker: Worker) -> bool:
    return worker.claim is None and worker.stalled_until <= world.step


def _claim_each(world: World, seats: Sequence[Worker], tx: Tx) -> Sequence[Claim]:
    """Claim work for all, of another user each, or of one while there is more than schedules."""
    if len(seats) == 1:
        taken = _claim_work(world, _claimer(seats[0]), tx)
        return [] if taken is None else [taken]
    in_turn = list[str]()
    while (user := whose_turn(world, passed_over=in_turn)) is not None:
        in_turn.append(user)
    claims = tx.queue.claim(None, _claimer(seats[0]), limit=len(seats))
    require(len(claims) <= len(seats), "more was claimed than there are seats")
    served = [claim.turn.user_id for claim in claims]
    # All slots of a user may have been missed, and nothing claimed.
    places = [in_turn.index(user) for user in served if user in in_turn]
    require(len(places) == len(served), "somebody was served who had nothing to do")
    require(all(a < b for a, b in pairwise(places)), "somebody else was to be served first")
    return claims


def _hold(world: World, worker: Worker, taken: Claim) -> None:
    held = world.holders.get(taken.turn.conversation_id)
    require(held is None, "a turn was claimed that somebody has")
    world.holders[taken.turn.conversation_id] = taken.turn
    worker.claim = taken


def _claim_work(world: World, claimer: Claimer, tx: Tx) -> Claim | None:
    in_turn = whose_turn(world, passed_over=claimer.passed_over)
    # Either way of finding out whose turn it is has to find the same.
    taken = tx.queue.claim_work(claimer, a_lot=world.random.choice([1, claimable.A_LOT]))
    require(taken is None or taken.turn.user_id == in_turn, "somebody else was to be served first")
    return taken


def _claimer(worker: Worker) -> Claimer:
    return Claimer(worker=worker.name, lease=LEASE, per_user_limit=CAP)


def prepare(world: World, worker: Worker) -> None:
    """Load what the run is for, and what the agent remembers."""
    turn = _turn(worker)

    def load(tx: Tx) -> tuple[object, tuple[str, ...]]:
        waiting = tx.inbox.waiting(turn.user_id, turn.conversation_id, turn.kind)
        return waiting, tx.sessions.load(turn, SESSION)

    loaded, remembered = world.transact(load)
    worker.loaded = loaded  # type: ignore[assignment]
    if world.holders.get(turn.conversation_id) == turn:
        known = world.memory[turn.conversation_id]
        require(list(remembered) == known, "the agent remembers what nobody committed")


def _go_on(world: World, worker: Worker) -> None:
    dice = world.random.random()
    if dice < 0.08:
        worker.forget()  # it crashed
    elif dice < 0.16:
        worker.stalled_until = world.step + world.random.randint(5, 60)
    elif dice < 0.4:
        renew(world, worker)
    elif dice < 0.5:
        _remember(world, worker)
    elif dice < 0.56:
        end(world, worker, _hand_back(world, worker))
    else:
        end(world, worker, commit_work(world, worker))


def renew(world: World, worker: Worker) -> None:
    turn = _turn(worker)
    found = world.transact(lambda tx: tx.turns.renew([turn], lease=LEASE))
    if turn.run_id not in found:
        worker.forget()
        return
    if found[turn.run_id].user_waiting and turn.kind is RunKind.BACKGROUND:
        end(world, worker, _hand_back(world, worker))


def _remember(world: World, worker: Worker) -> None:
    turn = _turn(worker)
    entry = f"{turn.run_id}:{turn.epoch}:{len(worker.written)}"
    world.transact(lambda tx: tx.sessions.append(turn, SESSION, [entry]))
    worker.written.append(entry)


def end(world: World, worker: Worker, work: Callable[[Tx], None]) -> None:
    """Commit, through connections that may break; know afterwards what became of it."""
    turn = _turn(worker)
    world.clock.pass_by(timedelta(milliseconds=1))
    if world.chance(0.1):
        world.db.breaks = world.random.choices(["before", "after"], k=world.random.randint(1, 2))
    try:
        world.db.commit_here(turn, work)
    except Fenced:
        held = world.holders.get(turn.conversation_id)
        require(held != turn, "a holder was fenced off although it had the turn")
    else:
        held = world.holders.pop(turn.conversation_id, None)
        require(held == turn, "an outcome was accepted from somebody without the turn")
        world.commits.add((turn.run_id, turn.epoch))
        world.memory[turn.conversation_id] += worker.written
    worker.forget()


def _hand_back(world: World, worker: Worker) -> Callable[[Tx], None]:
    """Make the transaction that hands a run back: for now, with a question, or to wait for jobs."""
    turn = _turn(worker)
    served = [item.id for item in worker.loaded or ()]
    wait = timedelta(seconds=world.random.choice([0, 20]))
    asks = world.chance(0.3)
    awaited = [] if asks or world.chance(0.5) else _jobs_of(world, turn)

    def back(tx: Tx) -> None:
        # Before their parent, as it is when one of them reports.
        settled = {job: _has_settled(tx, turn.user_id, job) for job in awaited}
        step = Step(conversation=tx.turns.hold(turn))
        if asks:
            step = transitions.ask_owner(step.conversation, _allowance_question(turn, tx))
        until = tx.now + (LONG if awaited else wait)
        tx.turns.hand_back(turn, step, until=until, served=served)
        if awaited:
            Waits(tx).begin(turn, settled)

    return back


def _jobs_of(world: World, turn: Turn) -> list[ConversationId]:
    """Find what the user of a run has handed out, apart from what the run is about itself."""
    found = world.rows(
        "SELECT id FROM conversations WHERE kind = 'job' AND user_id = ? AND id <> ?",
        turn.user_id,
        turn.conversation_id,
    )
    return [ConversationId(which) for (which,) in found]


def _has_settled(tx: Tx, user: UserId, job: ConversationId) -> bool:
    return jobs.is_settled(tx.conversations.lock(user, job))


def _allowance_question(turn: Turn, tx: Tx) -> Question:
    return Question(
        id=derive_question_id(turn.run_id, turn.epoch, "allowance"),
        purpose=Purpose.ALLOWANCE,
        type=QuestionType.CHOICE,
        prompt=f"{turn.run_id}:{turn.epoch} has spent what it may. Shall it go on?",
        options=(transitions.RAISE_ALLOWANCE, transitions.STOP),
        asked_at=tx.now,
        run_id=turn.run_id,
        run_kind=turn.kind,
    )


def commit_work(world: World, worker: Worker, *, calmly: bool = False) -> Callable[[Tx], None]:
    """Make the transaction that ends the worker's run, in one of the ways a run ends."""
    taken, turn = worker.claim, _turn(worker)
    assert taken is not None
    served = [item.id for item in worker.loaded or ()]
    word = f"{turn.run_id}:{turn.epoch}"
    outcome: Outcome | Failure = Complete(message=word)
    if not calmly:
        ways: list[Outcome | Failure] = [
            Complete(message=word),
            Complete(),
            Continue(message=word, again_in=timedelta(seconds=40)),
            NeedsInput(message=word, question=INPUT),
            Failure(FailureKind.TIMEOUT, word),
        ]
        outcome = world.random.choice(ways)

    def commit(tx: Tx) -> None:
        found = tx.turns.hold(turn)
        ending = RunEnding(status=RunStatus.SUCCESS)
        if turn.kind is RunKind.REPLY:
            step = transitions.reply(found, taken.run, word, now=tx.now)
        elif isinstance(outcome, Failure):
            step = transitions.fail(found, taken.run, outcome, now=tx.now)
            ending = RunEnding(status=RunStatus.FAILURE, failure=outcome)
        else:
            step = transitions.finish(found, taken.run, outcome, now=tx.now)
        tx.turns.commit(turn, step, ending, served=served)

    return commit


def rescue(world: World) -> None:
    freed = world.transact(lambda tx: tx.queue.rescue())
    if freed is None:
        return
    turn = freed.turn
    held = world.holders.pop(turn.conversation_id, None)
    require(held == turn, "a turn was rescued from somebody who did not have it")
    if turn.kind is RunKind.REPLY:
        world.given_up.add(turn.run_id)


def deliver(world: World, *, calmly: bool = False) -> bool:
    """Send one part; sometimes the sender dies between sending and saying so."""
    parcel = world.transact(lambda tx: tx.deliveries.lease(lease=LEASE))
    if parcel is None:
        return False
    dice = 1.0 if calmly else world.random.random()
    if dice < 0.1:
        return True
    if dice < 0.25:
        again_at = world.clock.now + timedelta(seconds=20)
        world.transact(lambda tx: tx.deliveries.mark_failed(parcel, "refused", again_at=again_at))
        return True
    world.sent[parcel.key] += 1
    if dice < 0.35:
        return True
    world.transact(lambda tx: tx.deliveries.mark_sent(parcel, provider_id="1"))
    return True


def change(
    world: World,
    user: UserId,
    conversation_id: ConversationId,
    transition: Callable[[Conversation, Tx], Step],
    cause: str,
) -> bool:
    """Let somebody do something to a conversation; what does not fit is refused and that is all."""

    def apply(tx: Tx) -> None:
        found = tx.conversations.lock(user, conversation_id)
        tx.conversations.save(transition(found, tx), cause=cause)

    try:
        world.transact(apply)
    except Conflict:
        return False
    return True


def person(world: World) -> None:
    """Let somebody say, answer, or do something."""
    user, which = world.random.choice(world.conversations)
    cause = f"person:{world.step}"
    verbs: dict[str, Callable[[Conversation, Tx], Step]] = {
        "say": lambda c, tx: transitions.receive_message(
            c, "Hello?", message_id=new_message_id(), now=tx.now, profile=_profile(world)
        ),
        "answer": lambda c, tx: transitions.answer(
            c, c.questions[0].id, fitting(c.questions[0].options), now=tx.now
        ),
        "event": lambda c, _: transitions.receive_event(c, {"n": world.step}),
        "run_now": lambda c, _: transitions.run_now(c),
        "follow_up": lambda c, tx: transitions.follow_up(
            c, "And now?", message_id=new_message_id(), now=tx.now
        ),
        "pause": lambda c, _: transitions.pause(c),
        "resume": lambda c, tx: transitions.resume(c, now=tx.now),
        "cancel": lambda c, tx: transitions.cancel(c, now=tx.now),
        "archive": lambda c, tx: transitions.archive(c, now=tx.now),
        "reopen": lambda c, tx: transitions.reopen(c, proposed=None, now=tx.now),
        "set_schedule": lambda c, tx: transitions.set_schedule(
            c,
            Interval(timedelta(minutes=3), anchor=tx.now),
            now=tx.now,
            state=State(context={"prompt": "Do it."}),
        ),
    }
    weights = {
        "say": 10,
        "answer": 10,
        "event": 6,
        "run_now": 3,
        "follow_up": 4,
        "resume": 3,
        "archive": 2,
        "reopen": 4,
        "set_schedule": 3,
    }
    verb = world.random.choices(list(verbs), [weights.get(name, 1) for name in verbs])[0]
    if verb == "answer" and not _asks(world, which):
        return
    if change(world, user, which, verbs[verb], cause) and verb in (
        *("pause", "resume", "cancel", "archive", "set_schedule", "reopen"),
    ):
        world.undisturbed.pop(which, None)


def _profile(world: World) -> str | None:
    """Choose the profile that a message asks for, without any dice: the others stay as they are."""
    return (None, "one", "two")[world.step % 3]


def _asks(world: World, conversation_id: ConversationId) -> bool:
    return bool(
        world.rows(
            "SELECT 1 FROM questions WHERE conversation_id = ? AND closed_at IS NULL",
            conversation_id,
        )
    )


def _turn(worker: Worker) -> Turn:
    assert worker.claim is not None
    return worker.claim.turn


def fitting(options: tuple[str, ...]) -> str:
    return options[0] if options else "this one"
