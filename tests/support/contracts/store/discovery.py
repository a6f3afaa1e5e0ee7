"""Discovery is claimed while its guard lets it; otherwise its slot passes without a trace."""

from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import select

from backburner.core import transitions
from backburner.core.conversation import Conversation, Status
from backburner.core.ids import UserId
from backburner.core.run import RunStatus
from backburner.ports import Claim
from backburner.store.tables import conversations
from support.stage.make import MATE, USER
from support.stage.scene import Scene

MINUTE = timedelta(minutes=1)
AFTER = 10 * MINUTE
EVERY = 30 * MINUTE


def discovery_looks_when_its_user_fell_silent_a_while_ago(scene: Scene) -> None:
    looks = _begin(scene)
    _talk(scene, at=EVERY - AFTER)

    claim = _slot(scene)

    assert claim is not None
    assert claim.turn.conversation_id == looks.id
    scene.finish(claim)
    (run,) = scene.history(looks)
    assert (run.status, run.slot_at) == (RunStatus.SUCCESS, looks.next_run_at)
    assert scene.load(looks).next_run_at == looks.next_run_at + EVERY  # type: ignore[operator]


def discovery_leaves_no_trace_of_a_look_that_its_guard_prevents(scene: Scene) -> None:
    looks = _begin(scene)
    _talk(scene, at=EVERY - AFTER + MINUTE)
    before = _other_rows(scene, looks), _changed_at(scene, looks)

    assert _slot(scene) is None

    assert (_other_rows(scene, looks), _changed_at(scene, looks)) == before
    passed = scene.load(looks)
    assert passed.next_run_at == looks.next_run_at + EVERY  # type: ignore[operator]
    assert looks == replace(passed, next_run_at=looks.next_run_at, settled_until=None)
    # It is not looked at again before its next slot.
    after = scene.dump()
    assert _slot(scene) is None
    assert scene.dump() == after


def discovery_does_not_look_for_one_who_never_spoke(scene: Scene) -> None:
    _begin(scene)
    scene.clock.advance(EVERY)

    assert _slot(scene) is None


def discovery_does_not_look_for_one_who_has_left(scene: Scene) -> None:
    _begin(scene)
    _talk(scene, at=MINUTE)
    scene.clock.advance(150 * MINUTE)

    assert _slot(scene) is None


def discovery_does_not_look_while_something_of_its_user_is_answered(scene: Scene) -> None:
    _begin(scene)
    scene.clock.advance(10 * MINUTE)
    chat = scene.chat()
    scene.say(chat)
    scene.clock.advance(20 * MINUTE)
    assert _slot(scene) is None

    reply = scene.begin_reply()
    scene.clock.advance(EVERY)
    assert _slot(scene) is None

    scene.finish(reply, "Well.", served=scene.items(reply))
    scene.clock.advance(EVERY)
    assert _slot(scene) is not None


def discovery_does_not_look_where_it_is_switched_off_for_all(scene: Scene) -> None:
    looks = _begin(scene)
    _talk(scene, at=EVERY - AFTER)

    assert scene.claim_work() is None
    assert scene.history(looks) == ()


def discovery_that_is_asked_for_looks_at_once(scene: Scene) -> None:
    looks = _begin(scene)
    scene.change(looks, transitions.run_now)

    claim = _slot(scene)

    assert claim is not None
    assert claim.run.slot_at is None


def other_work_is_claimed_when_a_look_is_passed_over(scene: Scene) -> None:
    _begin(scene)
    scene.clock.advance(EVERY)
    task = scene.task()

    claim = _slot(scene)

    assert claim is not None
    assert claim.turn.conversation_id == task.id


def discovery_is_found_while_it_is_switched_on(scene: Scene) -> None:
    scene.chat()
    scene.task()
    looks = _begin(scene)
    assert scene.run(lambda tx: tx.discovery.conversation_ids(USER)) == [looks.id]
    assert scene.run(lambda tx: tx.discovery.conversation_ids(MATE)) == []

    scene.change(looks, lambda found: transitions.archive(found, now=scene.clock.now))

    assert scene.load(looks).status is Status.ARCHIVED
    assert scene.run(lambda tx: tx.discovery.conversation_ids(USER)) == []


def what_was_said_lately_is_of_chats_and_in_order(scene: Scene) -> None:
    chat, other, task = scene.chat(), scene.chat(), scene.task()
    for where, text in ((chat, "One."), (task, "Of a task."), (other, "Two."), (chat, "Three.")):
        scene.say(where, text)
        scene.clock.advance(MINUTE)
    scene.say(scene.chat(MATE), "Not yours.")
    reply = scene.begin_reply()
    scene.finish(reply, "Four.", served=scene.items(reply))

    assert _said(scene, limit=9) == ["One.", "Two.", "Three.", "Four."]
    assert _said(scene, limit=2) == ["Three.", "Four."]


def _begin(scene: Scene, user: UserId = USER) -> Conversation:
    return scene.discovery(every=EVERY, user=user)


def _talk(scene: Scene, *, at: timedelta) -> None:
    """Let the user say something so long after discovery was set up, and wait for its slot."""
    scene.clock.advance(at)
    scene.say(scene.chat())
    reply = scene.begin_reply()
    scene.finish(reply, "Well.", served=scene.items(reply))
    scene.clock.advance(EVERY - at)


def _slot(scene: Scene) -> Claim | None:
    return scene.claim_work(discovers_after=AFTER)


def _said(scene: Scene, *, limit: int) -> list[str]:
    found = scene.run(lambda tx: tx.discovery.recent_snippets(USER, limit=limit))
    return [snippet.message.content for snippet in found]


def _other_rows(scene: Scene, looks: Conversation) -> dict[str, list[str]]:
    """Read every row but that of discovery itself."""
    found = scene.dump()
    rows = found["conversations"]
    return {**found, "conversations": [row for row in rows if looks.id not in row]}


def _changed_at(scene: Scene, looks: Conversation) -> datetime:
    asked = select(conversations.c.updated_at).where(conversations.c.id == looks.id)
    found: datetime = scene.run(lambda tx: tx.connection.execute(asked).scalar_one())
    return found
