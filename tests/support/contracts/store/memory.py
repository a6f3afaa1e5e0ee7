"""An agent remembers what was committed and what it did itself, and nothing else."""

from backburner.core.conversation import Conversation
from backburner.ports import Claim
from support.stage.scene import Scene

SESSION = "session"


def an_agent_remembers_what_was_committed_and_what_it_did_itself(scene: Scene) -> None:
    chat = scene.chat()
    first = _reply(scene, chat)
    _remember(scene, first, "one", "two")
    assert _remembered(scene, first) == ("one", "two")
    scene.finish(first, "Hello.", served=scene.items(first))

    second = _reply(scene, chat)
    _remember(scene, second, "three")

    assert _remembered(scene, second) == ("one", "two", "three")


def an_agent_does_not_remember_what_a_dead_holder_did(scene: Scene) -> None:
    dead = _reply(scene, scene.chat())
    _remember(scene, dead, "lost")
    scene.crash(dead)
    # It may still write, not knowing that it was taken for dead.
    _remember(scene, dead, "lost too")

    assert _remembered(scene, scene.begin_reply()) == ()


def an_agent_remembers_what_it_did_before_it_was_handed_back(scene: Scene) -> None:
    task = scene.task()
    before = scene.begin_work()
    _remember(scene, before, "one")
    scene.hand_back(before)
    between = _reply(scene, task)
    assert _remembered(scene, between) == ("one",)
    _remember(scene, between, "two")
    scene.finish(between, "Hello.", served=scene.items(between))

    assert _remembered(scene, scene.begin_work()) == ("one", "two")


def an_agent_that_goes_on_forgets_what_it_did_before_it_crashed(scene: Scene) -> None:
    scene.task()
    first = scene.begin_work()
    _remember(scene, first, "one")
    scene.hand_back(first)
    second = scene.begin_work()
    assert second.run.id == first.run.id
    _remember(scene, second, "lost")
    scene.crash(second)

    assert _remembered(scene, scene.begin_work()) == ("one",)


def one_session_does_not_remember_another(scene: Scene) -> None:
    claim = _reply(scene, scene.chat())
    _remember(scene, claim, "one")

    assert scene.run(lambda tx: tx.sessions.load(claim.turn, "another")) == ()


def a_session_that_is_forgotten_is_gone_and_no_other(scene: Scene) -> None:
    chat = scene.chat()
    first = _reply(scene, chat)
    _remember(scene, first, "one")
    scene.run(lambda tx: tx.sessions.append(first.turn, "another", ["two"]))
    scene.finish(first, "Hello.", served=scene.items(first))
    second = _reply(scene, chat)

    scene.run(lambda tx: tx.sessions.delete(chat.user_id, chat.id, SESSION))

    assert _remembered(scene, second) == ()
    assert scene.run(lambda tx: tx.sessions.load(second.turn, "another")) == ("two",)


def _reply(scene: Scene, conversation: Conversation) -> Claim:
    scene.say(conversation)
    return scene.begin_reply()


def _remember(scene: Scene, claim: Claim, *entries: str) -> None:
    scene.run(lambda tx: tx.sessions.append(claim.turn, SESSION, entries))


def _remembered(scene: Scene, claim: Claim) -> tuple[str, ...]:
    return scene.run(lambda tx: tx.sessions.load(claim.turn, SESSION))
