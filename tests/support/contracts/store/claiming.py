"""Who gets a turn, and in which order."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import select, update

from backburner.core import transitions
from backburner.core.conversation import Author, Conversation, Kind, Status
from backburner.core.ids import QuestionId, new_item_id
from backburner.core.outcome import NeedsInput
from backburner.core.question import NewQuestion, QuestionType
from backburner.core.run import ItemKind, NewItem, RunKind, RunStatus, Turn
from backburner.core.schedule import Event, Interval, Scheduled
from backburner.core.transitions import Report, Step
from backburner.core.work.timeouts import LONG_TIMEOUT
from backburner.ports import SeatRequest
from backburner.store import tables
from support.stage import make
from support.stage.make import MATE, NOON, USER
from support.stage.scene import CLAIMER, Scene

HOUR = timedelta(hours=1)
HOURLY = Interval(HOUR, anchor=NOON)
QUESTION = NeedsInput(
    message="?", question=NewQuestion(type=QuestionType.INPUT, prompt="Which one?")
)
RUN_NOW = NewItem(kind=ItemKind.RUN_NOW, run_kind=RunKind.BACKGROUND, at_once=True)
EVENT = NewItem(kind=ItemKind.EVENT, run_kind=RunKind.BACKGROUND)
MESSAGE = NewItem(kind=ItemKind.MESSAGE, run_kind=RunKind.REPLY, content={"text": "Hello?"})


def work_is_ready_in_the_background_with_a_schedule_whose_time_has_come(scene: Scene) -> None:
    due = scene.task(Scheduled(NOON + HOUR))
    scene.task(Scheduled(NOON + 2 * HOUR))
    scene.task(Event("file", {}))
    for status in (Status.ACTIVE, Status.WAITING_INPUT, Status.ARCHIVED):
        _become(scene, scene.task(Scheduled(NOON + HOUR)), status)
    scene.clock.advance(HOUR - timedelta.resolution)
    assert scene.claim_work() is None
    scene.clock.advance(timedelta.resolution)

    assert scene.begin_work().conversation.id == due.id
    assert scene.claim_work() is None


def nothing_of_a_disabled_user_is_claimed(scene: Scene) -> None:
    scene.task()
    scene.say(scene.chat())
    _disable(scene, at=NOON)
    assert scene.claim_work() is None
    assert scene.claim_reply() is None

    _disable(scene, at=None)
    assert scene.begin_reply().run.kind is RunKind.REPLY
    assert scene.begin_work().run.kind is RunKind.BACKGROUND


def _disable(scene: Scene, *, at: datetime | None) -> None:
    scene.run(lambda tx: tx.accounts.disable(USER, at=at))


def what_was_waiting_longest_is_claimed_first(scene: Scene) -> None:
    two, one, three = [scene.task(Scheduled(NOON + number * HOUR)).id for number in (2, 1, 3)]
    scene.clock.advance(4 * HOUR)

    assert [scene.begin_work().conversation.id for _ in range(3)] == [one, two, three]


def a_turn_that_is_taken_is_not_given_to_anybody_else(scene: Scene) -> None:
    task = scene.task()
    claim = scene.begin_work()
    scene.say(task)
    scene.change(task, transitions.run_now)

    assert scene.claim_work() is None
    assert scene.claim_reply() is None
    held = scene.run(lambda tx: tx.connection.execute(select(tables.conversations)).one())
    assert (held.turn_run, held.epoch) == (claim.run.id, claim.turn.epoch)


def a_claim_is_written_down_as_a_run_under_the_next_epoch(scene: Scene) -> None:
    task = scene.task(HOURLY)
    for epoch in (1, 2):
        claim = scene.begin_work()
        assert claim.turn == Turn(USER, task.id, claim.run.id, epoch, RunKind.BACKGROUND)
        assert claim.run.status is RunStatus.RUNNING
        assert claim.run.slot_at == claim.run.started_at == scene.clock.now
        assert claim.run.schedule_revision == task.schedule_revision
        assert scene.history(task)[0] == claim.run
        scene.finish(claim)
        scene.clock.advance(HOUR)


def nothing_in_the_archive_is_claimed(scene: Scene) -> None:
    for item in (MESSAGE, RUN_NOW, EVENT):
        task = scene.task()
        _put(scene, task, item)
        _become(scene, task, Status.ARCHIVED)

    assert scene.claim_reply() is None
    assert scene.claim_work() is None


def replies_are_given_in_the_order_in_which_people_spoke(scene: Scene) -> None:
    third, first, second = [scene.chat(user) for user in (USER, MATE, USER)]
    for chat in (first, second, third):
        scene.clock.advance(timedelta(seconds=1))
        scene.say(chat)

    claimed = [scene.begin_reply().conversation.id for _ in range(3)]
    assert claimed == [first.id, second.id, third.id]
    assert scene.claim_reply() is None


def seats_for_short_runs_are_given_to_no_long_ones(scene: Scene) -> None:
    long, short = _with_timeouts(scene, HOUR, LONG_TIMEOUT)
    (remote,) = _with_timeouts(scene, HOUR, profile="remote")
    scene.run(lambda tx: tx.inbox.put(USER, long.id, [replace(RUN_NOW, id=new_item_id())]))

    claims = [scene.claim_work(short_only=True) for _ in range(2)]
    assert [claim and claim.conversation.id for claim in claims] == [short.id, None]
    claims = [scene.claim_work(short=("", "local")) for _ in range(2)]
    assert [claim and claim.conversation.id for claim in claims] == [remote.id, None]
    assert scene.begin_work().conversation.id == long.id
    assert scene.claim_work() is None


def a_long_run_that_was_handed_back_goes_on_where_long_runs_have_a_seat(scene: Scene) -> None:
    (long,) = _with_timeouts(scene, HOUR)
    scene.hand_back(scene.begin_work(), after=timedelta(seconds=1))
    scene.clock.advance(timedelta(seconds=1))

    assert scene.claim_work(short_only=True) is None
    assert scene.claim_work(short=("",)) is None
    assert scene.begin_work().conversation.id == long.id


def of_several_due_at_once_no_more_are_claimed_than_have_a_seat_for_long_runs(
    scene: Scene,
) -> None:
    for user in (USER, MATE):
        scene.task(user=user, run_timeout=HOUR)

    def has_seat(besides: Sequence[SeatRequest], wanted: SeatRequest) -> bool:
        return not (wanted.is_long and any(seat.is_long for seat in besides))

    claims = scene.run(lambda tx: tx.queue.claim(None, CLAIMER, limit=2, has_seat=has_seat))
    assert len(claims) == 1


def _with_timeouts(scene: Scene, *timeouts: timedelta, profile: str = "") -> Sequence[Conversation]:
    tasks = []
    for timeout in timeouts:
        task = scene.task(run_timeout=timeout)
        scene.change(task, lambda found: Step(conversation=replace(found, profile=profile)))
        tasks.append(task)
    return tasks


def nothing_is_claimed_for_an_engine_that_is_full(scene: Scene) -> None:
    local, remote = _with_engine(scene, "local"), _with_engine(scene, "remote")
    chat = scene.chat()
    scene.change(chat, lambda found: Step(conversation=replace(found, profile="local")))
    scene.say(chat)

    assert scene.claim_reply(full=("local",)) is None
    claim = scene.claim_work(full=("local",))
    assert claim is not None
    assert claim.conversation.id == remote.id
    assert scene.claim_work(full=("local",)) is None
    assert scene.begin_reply().conversation.id == chat.id
    assert scene.begin_work().conversation.id == local.id


def nothing_is_worked_on_while_everything_is_paused(scene: Scene) -> None:
    scene.task()
    chat = scene.chat()
    scene.say(chat)
    scene.run(lambda tx: tx.users.pause_everything(None, paused=True))

    assert scene.claim_work() is None
    assert scene.begin_reply().conversation.id == chat.id

    scene.run(lambda tx: tx.users.pause_everything(None, paused=False))
    scene.run(lambda tx: tx.users.pause_everything(USER, paused=True))
    assert scene.claim_work() is None

    scene.run(lambda tx: tx.users.pause_everything(USER, paused=False))
    assert scene.claim_work() is not None


def work_waits_while_a_person_does(scene: Scene) -> None:
    task = scene.task()
    scene.hand_back(scene.begin_work())
    scene.say(task)
    scene.change(task, transitions.run_now)
    assert scene.claim_work() is None
    reply = scene.begin_reply()
    scene.finish(reply, "Hello.", served=scene.items(reply))

    assert scene.begin_work().turn.kind is RunKind.BACKGROUND


def a_run_that_was_handed_back_goes_on_in_the_same_row(scene: Scene) -> None:
    task = scene.task()
    first = scene.begin_work()
    scene.hand_back(first, after=HOUR)
    assert [run.status for run in scene.history(task)] == [RunStatus.QUEUED]
    assert scene.claim_work() is None
    scene.clock.advance(HOUR)

    second = scene.begin_work()

    assert second.run == replace(first.run, epoch=first.run.epoch + 1, resumed_at=scene.clock.now)
    assert scene.history(task) == (second.run,)
    scene.finish(second)
    assert [run.status for run in scene.history(task)] == [RunStatus.SUCCESS]


def a_reply_that_waits_for_something_goes_on_when_a_person_speaks(scene: Scene) -> None:
    chat = scene.chat()
    scene.say(chat, "One.")
    first = scene.begin_reply()
    scene.hand_back(first, after=None, served=scene.items(first))
    scene.clock.advance(24 * HOUR)
    assert scene.claim_work() is None
    assert scene.claim_reply() is None
    scene.say(chat, "Two.")

    resumed = replace(first.run, epoch=2, resumed_at=scene.clock.now)
    assert scene.begin_reply().run == resumed


def behind_a_question_a_handed_back_reply_goes_on_and_work_does_not(scene: Scene) -> None:
    task, chat = scene.task(), scene.chat()
    scene.hand_back(scene.begin_work())
    scene.say(chat)
    reply = scene.begin_reply()
    scene.hand_back(reply, served=scene.items(reply))
    _ask(scene, task)
    _ask(scene, chat)

    assert scene.begin_work().run.id == reply.run.id
    assert scene.claim_work() is None


def a_new_schedule_drops_work_that_was_handed_back(scene: Scene) -> None:
    task, later = scene.task(), Scheduled(NOON + HOUR)
    scene.hand_back(scene.begin_work())

    scene.change(task, lambda found: transitions.set_schedule(found, later, now=NOON))

    assert [run.status for run in scene.history(task)] == [RunStatus.CANCELLED]
    assert scene.claim_work() is None


def an_active_conversation_runs_only_what_was_asked_for_at_once(scene: Scene) -> None:
    chat = scene.chat()
    _put(scene, chat, EVENT)
    assert scene.claim_work() is None
    _put(scene, chat, RUN_NOW)

    claim = scene.begin_work()

    assert (claim.turn.kind, claim.run.slot_at) == (RunKind.BACKGROUND, None)


def an_event_starts_a_run_without_any_time_being_due(scene: Scene) -> None:
    task = scene.task(Event("file", {}))
    scene.change(task, lambda found: transitions.receive_event(found, {"path": "/a"}))

    claim = scene.begin_work()

    assert [item.content for item in scene.items(claim)] == [{"path": "/a"}]
    assert claim.run.slot_at is None


def events_wait_behind_a_question(scene: Scene) -> None:
    task = scene.task(Event("file", {}))
    scene.change(task, lambda found: transitions.receive_event(found, {}))
    asking = scene.begin_work()
    scene.finish(asking, QUESTION, served=scene.items(asking))
    scene.change(task, lambda found: transitions.receive_event(found, {}))
    assert scene.claim_work() is None
    scene.answer(task, "this one")

    kinds = {item.kind for item in scene.items(scene.begin_work())}
    assert kinds == {ItemKind.EVENT, ItemKind.ANSWER}


def a_result_of_a_job_starts_a_reply_with_nobody_there(scene: Scene) -> None:
    chat, job = scene.chat(), make.conversation(kind=Kind.JOB, title="Job", created_by=Author.AGENT)
    scene.change(chat, lambda found: transitions.receive_report(found, job, Report("Done.")))
    assert scene.claim_reply() is None
    assert scene.claim_work(cap=0) is None

    claim = scene.begin_work()

    assert claim.turn.kind is RunKind.REPLY
    assert [item.kind for item in scene.items(claim)] == [ItemKind.JOB_RESULT]
    scene.task()
    assert scene.claim_work(cap=1) is None


def a_paused_user_gets_replies_and_nothing_else(scene: Scene) -> None:
    scene.task()
    scene.hand_back(scene.begin_work())
    _put(scene, scene.chat(), RUN_NOW)
    scene.task()
    chat = scene.chat()
    scene.say(chat)
    scene.run(lambda tx: tx.connection.execute(update(tables.users).values(paused=True)))
    work = scene.task(user=MATE)

    assert scene.begin_work().conversation.id == work.id
    assert scene.claim_work() is None
    assert scene.begin_reply().conversation.id == chat.id


def _become(scene: Scene, conversation: Conversation, status: Status) -> None:
    """Let a conversation be as no transition would leave it."""
    table = tables.conversations
    change = update(table).where(table.c.id == conversation.id).values(status=status.value)
    scene.run(lambda tx: tx.connection.execute(change))


def _put(scene: Scene, conversation: Conversation, item: NewItem) -> None:
    user, new = conversation.user_id, replace(item, id=new_item_id())
    scene.run(lambda tx: tx.inbox.put(user, conversation.id, [new]))


def _ask(scene: Scene, conversation: Conversation) -> None:
    question = make.question(id=QuestionId(f"q_{conversation.id}"))
    scene.change(conversation, lambda found: transitions.ask_owner(found, question))


def _with_engine(scene: Scene, engine: str) -> Conversation:
    task = scene.task()
    return scene.change(task, lambda found: Step(conversation=replace(found, profile=engine)))
