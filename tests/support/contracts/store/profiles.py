"""Under which profile a run is claimed, and that it is claimed only where that one has a seat."""

from dataclasses import replace
from datetime import timedelta

from backburner.core import routing, transitions
from backburner.core.conversation import Conversation
from backburner.core.ids import new_item_id, new_message_id
from backburner.core.retry import MAX_CRASHES
from backburner.core.routing import AfterDemo, Routes
from backburner.core.run import Failure, FailureKind, ItemKind, NewItem, RunKind
from backburner.core.schedule import Event, Interval
from backburner.core.transitions import Step, Stops
from backburner.core.work.timeouts import LONG_TIMEOUT
from backburner.ports import Claim
from support.stage.make import MATE, NOON, USER
from support.stage.scene import CLAIMER, Scene

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
ROUTES = Routes(names=("remote", "local", "demo"), chat="remote", background="local")
AFTER_DEMO = AfterDemo(demos=frozenset({"demo"}), routes=ROUTES, min_interval=timedelta(minutes=1))


def a_reply_takes_a_seat_of_the_profile_that_its_message_asks_for(scene: Scene) -> None:
    chat = _under(scene, scene.chat(), "remote")
    scene.say(chat, profile="local")

    assert scene.claim_reply(full=("local",)) is None
    assert _profile(scene.claim_reply(full=("remote",))) == "local"


def of_several_messages_the_last_that_asks_for_a_profile_decides(scene: Scene) -> None:
    chat = _under(scene, scene.chat(), "remote")
    for profile in (None, "demo", "local", None):
        scene.say(chat, profile=profile)

    assert scene.claim_reply(full=("local",)) is None
    assert _profile(scene.claim_reply(full=("remote", "demo"))) == "local"


def what_a_message_asked_for_ends_with_its_reply(scene: Scene) -> None:
    chat = _under(scene, scene.chat(), "remote")
    for how in ("Hello.", Failure(FailureKind.TIMEOUT, "It took too long.")):
        scene.say(chat, profile="local")
        reply = scene.begin_reply()
        scene.finish(reply, how, served=scene.items(reply))
        scene.say(chat)

        assert scene.claim_reply(full=("remote",)) is None
        reply = scene.begin_reply()
        assert reply.profile == "remote"
        scene.finish(reply, "Hello.", served=scene.items(reply))


def what_a_message_asks_for_during_a_reply_is_for_the_next_one(scene: Scene) -> None:
    chat = _under(scene, scene.chat(), "remote")
    for first, later in ((None, "local"), ("local", "demo"), ("local", "local")):
        scene.say(chat, profile=first)
        reply = scene.begin_reply()
        items = scene.items(reply)
        scene.say(chat, profile=later)
        scene.finish(reply, "Hello.", served=items)

        reply = scene.begin_reply()
        assert (reply.profile, reply.conversation.profile) == (later, "remote")
        scene.finish(reply, "Hello.", served=scene.items(reply))


def a_reply_that_was_handed_back_goes_on_under_the_profile_that_was_asked_for(
    scene: Scene,
) -> None:
    chat = _under(scene, scene.chat(), "remote")
    scene.say(chat, profile="local")
    reply = scene.begin_reply()
    scene.hand_back(reply, served=scene.items(reply))

    assert scene.claim_work(full=("local",)) is None
    scene.say(chat)
    assert scene.claim_reply(full=("local",)) is None
    assert _profile(scene.claim_reply(full=("remote",))) == "local"


def a_reply_that_crashed_is_given_again_under_the_profile_that_was_asked_for(
    scene: Scene,
) -> None:
    chat = _under(scene, scene.chat(), "remote")
    scene.say(chat, profile="local")
    for _ in range(MAX_CRASHES):
        reply = scene.begin_reply()
        assert reply.profile == "local"
        scene.crash(reply)
    # It was given up.
    scene.say(chat)

    assert scene.begin_reply().profile == "remote"


def a_reply_that_was_handed_back_and_crashed_is_given_again_as_it_was_asked_for(
    scene: Scene,
) -> None:
    chat = _under(scene, scene.chat(), "remote")
    scene.say(chat, profile="local")
    reply = scene.begin_reply()
    scene.hand_back(reply, served=scene.items(reply))
    resumed = scene.begin_work()
    assert resumed.profile == "local"
    scene.crash(resumed)

    assert scene.begin_reply().profile == "local"


def what_was_asked_for_ends_with_a_reply_that_is_stopped(scene: Scene) -> None:
    chat = _under(scene, scene.chat(), "remote")
    scene.say(chat, profile="local")
    scene.change(chat, lambda found: Step(conversation=found, stops=Stops.REPLIES))
    scene.say(chat)

    assert scene.begin_reply().profile == "remote"


def a_stopped_reply_that_crashed_leaves_what_it_was_asked_for(scene: Scene) -> None:
    chat = _under(scene, scene.chat(), "remote")
    scene.say(chat, profile="local")
    reply = scene.begin_reply()
    scene.hand_back(reply, served=scene.items(reply))
    resumed = scene.begin_work()
    scene.run(lambda tx: tx.runs.stop_reply(USER, chat.id))
    scene.crash(resumed)
    scene.say(chat)

    assert scene.begin_reply().profile == "remote"


def background_work_takes_no_seat_of_the_profile_that_a_message_asks_for(scene: Scene) -> None:
    task = _under(scene, scene.task(), "remote")
    scene.say(task, profile="local")
    reply = scene.begin_reply()
    scene.hand_back(reply, after=HOUR, served=scene.items(reply))

    assert scene.claim_work(full=("remote",)) is None
    work = scene.claim_work(full=("local",))
    assert (_profile(work), work and work.turn.kind) == ("remote", RunKind.BACKGROUND)


def requested_work_takes_a_seat_of_the_profile_that_was_asked_for(scene: Scene) -> None:
    task = _under(scene, scene.task(Event("file", {})), "remote")
    _ask_for_work(scene, task, "local")

    assert scene.claim_work(full=("local",)) is None
    work = scene.claim_work(full=("remote",))
    assert work is not None
    assert work.profile == "local"
    scene.hand_back(work, served=scene.items(work))
    assert scene.claim_work(full=("local",)) is None
    work = scene.begin_work()
    assert work.profile == "local"
    scene.finish(work, served=scene.items(work))
    scene.change(task, transitions.run_now)
    assert scene.begin_work().profile == "remote"


def of_two_reasons_to_run_one_without_a_seat_leaves_it_to_the_other(scene: Scene) -> None:
    """A reply that was handed back has no seat, and the work of the same conversation has one."""
    task = _under(scene, scene.task(), "remote")
    scene.say(task, profile="local")
    reply = scene.begin_reply()
    scene.hand_back(reply, served=scene.items(reply))

    work = scene.claim_work(full=("local",))
    assert (_profile(work), work and work.turn.kind) == ("remote", RunKind.BACKGROUND)


def work_that_leaves_the_demo_takes_a_seat_of_the_profile_for_its_kind(scene: Scene) -> None:
    chat, task = (_under(scene, one, "demo") for one in (scene.chat(), scene.task()))
    scene.say(chat)

    assert scene.claim_reply(full=("remote",), after_demo=AFTER_DEMO) is None
    assert scene.claim_work(full=("local",), after_demo=AFTER_DEMO) is None
    reply = scene.claim_reply(full=("local",), after_demo=AFTER_DEMO)
    assert (_profile(reply), reply and reply.conversation.id) == ("remote", chat.id)
    work = scene.claim_work(full=("remote",), after_demo=AFTER_DEMO)
    assert (_profile(work), work and work.conversation.id) == ("local", task.id)


def of_several_that_leave_the_demo_at_once_no_more_are_claimed_than_have_seats(
    scene: Scene,
) -> None:
    for user in (USER, MATE):
        _under(scene, scene.task(user=user), "demo")
    claimer = replace(CLAIMER, after_demo=AFTER_DEMO)
    claims = scene.run(
        lambda tx: tx.queue.claim(
            None, claimer, limit=2, has_seat=lambda besides, seat: seat not in besides
        )
    )

    assert [claim.profile for claim in claims] == ["local"]


def what_was_chosen_by_name_or_repeats_too_often_stays_with_the_demo(scene: Scene) -> None:
    chosen = _under(scene, scene.chat(), "demo", requested_profile="demo")
    scene.say(chosen)
    reply = scene.claim_reply(full=("remote",), after_demo=AFTER_DEMO)
    assert _profile(reply) == "demo"

    often = scene.task(Interval(SECOND, anchor=NOON - HOUR))
    _under(scene, often, "demo")
    scene.clock.advance(SECOND)
    assert _profile(scene.claim_work(after_demo=AFTER_DEMO)) == "demo"


def a_run_of_the_demo_that_was_handed_back_goes_on_there(scene: Scene) -> None:
    task = _under(scene, scene.task(), "demo")
    scene.hand_back(scene.begin_work())

    work = scene.claim_work(full=("local",), after_demo=AFTER_DEMO)
    assert (_profile(work), work and work.conversation.id) == ("demo", task.id)


def long_runs_wait_for_a_seat_of_the_profile_that_they_will_use(scene: Scene) -> None:
    task = scene.task(Event("file", {}), run_timeout=LONG_TIMEOUT + SECOND)
    _under(scene, task, "remote")
    _ask_for_work(scene, task, "local")

    assert scene.claim_work(short=("local",)) is None
    assert _profile(scene.claim_work(short=("remote",))) == "local"


def the_profile_of_a_waiting_reply_is_the_one_that_it_will_use(scene: Scene) -> None:
    assert scene.run(lambda tx: tx.queue.waiting_profiles(AFTER_DEMO)) == []
    chat = _under(scene, scene.chat(), "demo")
    scene.say(chat)
    assert scene.run(lambda tx: tx.queue.waiting_profiles(AFTER_DEMO)) == ["remote"]
    scene.say(chat, profile="local")

    assert scene.run(lambda tx: tx.queue.waiting_profiles(AFTER_DEMO)) == ["local"]


def the_agenda_leaves_out_work_that_would_use_a_profile_in_an_outage(scene: Scene) -> None:
    asked = _under(scene, scene.task(Event("file", {})), "remote")
    _ask_for_work(scene, asked, "local")
    _under(scene, scene.task(), "demo")

    def is_due(*outages: str) -> bool:
        without = AFTER_DEMO.match(outages)
        return scene.run(lambda tx: tx.queue.agenda(without=without)).work is not None

    assert is_due()
    assert is_due("remote")
    assert not is_due("local")


def _under(scene: Scene, conversation: Conversation, profile: str, **more: object) -> Conversation:
    return scene.change(
        conversation,
        lambda found: Step(conversation=replace(found, profile=profile, **more)),  # type: ignore[arg-type]
    )


def _ask_for_work(scene: Scene, task: Conversation, profile: str) -> None:
    """Let a message start background work under a profile."""
    content = {"message_id": new_message_id(), "text": "Go on.", "profile": profile}
    item = NewItem(
        kind=ItemKind.MESSAGE, run_kind=RunKind.BACKGROUND, content=content, id=new_item_id()
    )
    scene.change(
        task,
        lambda found: Step(conversation=replace(found, work_profile=profile), inbox=(item,)),
    )


def _profile(claim: Claim | None) -> str | None:
    return None if claim is None else claim.profile


def a_queued_run_that_is_dropped_takes_along_what_was_asked_for_it(scene: Scene) -> None:
    task = scene.task()
    asked = routing.with_request(scene.load(task), RunKind.BACKGROUND, "local")
    scene.change(task, lambda _: Step(conversation=asked))

    scene.change(task, lambda found: Step(conversation=found, drops_queued=True))

    assert scene.load(task).work_profile == ""
