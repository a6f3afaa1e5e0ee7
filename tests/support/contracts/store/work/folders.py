"""Folders: what is kept of them, and who works in one at a time."""

from dataclasses import replace

from backburner.core.conversation import Conversation, WorkFolder
from backburner.core.ids import ConversationId, UserId
from backburner.core.transitions import Step
from backburner.core.work.folders import Folder
from backburner.ports import Claim
from support.stage.make import MATE, NOON, USER
from support.stage.scene import CLAIMER, Scene

HERE, ELSEWHERE = "00aa", "00bb"
APP = WorkFolder("/srv/app", HERE)
ADDED = Folder(
    path=APP.path,
    machine=HERE,
    machine_name="laptop",
    read_only=False,
    created_at=NOON,
    instructions={"AGENTS.md": "Test first."},
)


def _claim_work(scene: Scene, machine: str = HERE, *, shares_folders: bool = False) -> Claim | None:
    claimer = replace(CLAIMER, machine=machine, shares_folders=shares_folders)
    return scene.run(lambda tx: tx.queue.claim_work(claimer))


def _claim_reply(
    scene: Scene, machine: str = HERE, *, shares_folders: bool = False
) -> Claim | None:
    claimer = replace(CLAIMER, machine=machine, shares_folders=shares_folders)
    return scene.run(lambda tx: tx.queue.claim_reply(claimer))


def _chat_in(scene: Scene, folder: WorkFolder) -> Conversation:
    chat = scene.chat()
    return scene.change(chat, lambda found: Step(conversation=replace(found, folder=folder)))


def a_folder_is_found_as_it_was_added_and_only_by_its_owner(scene: Scene) -> None:
    scene.user(), scene.user(MATE)
    other = replace(ADDED, path="/srv/other", machine="", read_only=True, from_settings=True)

    scene.run(lambda tx: tx.folders.put(USER, other))
    scene.run(lambda tx: tx.folders.put(USER, ADDED))

    assert scene.run(lambda tx: tx.folders.list(USER)) == [ADDED, other]
    assert scene.run(lambda tx: tx.folders.find(USER, APP.path, HERE)) == ADDED
    assert scene.run(lambda tx: tx.folders.find(USER, APP.path, ELSEWHERE)) is None
    assert scene.run(lambda tx: tx.folders.list(MATE)) == []
    assert scene.run(lambda tx: tx.folders.find(MATE, APP.path, HERE)) is None


def the_conversations_of_a_folder_are_found_newest_first_and_by_their_owner(
    scene: Scene,
) -> None:
    first, second = _chat_in(scene, APP), _chat_in(scene, WorkFolder(APP.path, ELSEWHERE))
    _chat_in(scene, WorkFolder("/srv/other", HERE))

    def read(user: UserId, machine: str, limit: int = 9) -> list[str]:
        found = scene.run(
            lambda tx: tx.browse.titles_in_folder(user, APP.path, machine, limit=limit)
        )
        return list(found)

    assert read(USER, HERE) == [first.id]
    assert read(USER, "") == sorted([first.id, second.id], reverse=True)
    assert len(read(USER, "", limit=1)) == 1
    assert read(MATE, "") == []
    named = scene.run(lambda tx: tx.browse.titles(USER, [first.id, ConversationId("c_none")]))
    assert named == {first.id: first.title}
    assert scene.run(lambda tx: tx.browse.titles(MATE, [first.id])) == {}


def added_folders_are_known_to_all_and_those_of_the_settings_are_not(scene: Scene) -> None:
    scene.user(), scene.user(MATE)
    scene.run(lambda tx: tx.folders.put(USER, ADDED))
    scene.run(lambda tx: tx.folders.put(MATE, replace(ADDED, path="/srv/other")))
    scene.run(lambda tx: tx.folders.put(MATE, replace(ADDED, path="/srv/m", from_settings=True)))

    known = scene.run(lambda tx: tx.folders.added_by_all())
    assert sorted(known) == sorted([(USER, APP.path), (MATE, "/srv/other")])


def a_folder_is_replaced_reported_and_removed(scene: Scene) -> None:
    scene.user()
    task = scene.task(folder=APP)
    scene.run(lambda tx: tx.folders.put(USER, ADDED))

    scene.run(lambda tx: tx.folders.put(USER, replace(ADDED, read_only=True)))
    scene.run(lambda tx: tx.folders.mark_reported(USER, APP, "digest"))
    changed = scene.run(lambda tx: tx.folders.find(USER, APP.path, HERE))
    scene.run(lambda tx: tx.folders.remove(USER, APP.path, HERE))

    assert changed == replace(ADDED, read_only=True, reported="digest")
    assert scene.load(task).folder == replace(APP, read_only=True)
    assert scene.run(lambda tx: tx.folders.list(USER)) == []


def one_run_at_a_time_writes_in_a_folder(scene: Scene) -> None:
    first, second = scene.task(folder=APP), scene.task(folder=APP)
    other = scene.task(folder=replace(APP, path="/srv/other"))

    claims = [_claim_work(scene) for _ in range(3)]
    begun = [claim.conversation.id for claim in claims if claim is not None]
    holders = scene.run(lambda tx: tx.folders.holders(USER))
    assert begun == [first.id, other.id]
    assert holders[APP.path, HERE] == first.id

    assert claims[0] is not None
    scene.finish(claims[0])
    again = _claim_work(scene)
    assert again is not None
    assert again.conversation.id == second.id


def a_reply_waits_for_the_folder_and_is_known_to_wait(scene: Scene) -> None:
    scene.task(folder=APP)
    chat = _chat_in(scene, APP)
    claim = _claim_work(scene)
    assert claim is not None
    assert scene.run(lambda tx: tx.folders.wanted_for_replies()) == {}

    scene.say(chat)
    assert _claim_reply(scene) is None
    assert scene.run(lambda tx: tx.folders.wanted_for_replies()) == {
        (USER, APP.path, HERE): frozenset({""})
    }

    scene.finish(claim)
    reply = _claim_reply(scene)
    assert reply is not None
    assert reply.conversation.id == chat.id


def runs_that_only_read_share_a_folder(scene: Scene) -> None:
    reading = replace(APP, read_only=True)
    scene.task(folder=APP), scene.task(folder=reading), scene.task(folder=reading)

    assert all(_claim_work(scene) for _ in range(3))


def folders_of_different_users_are_different_folders(scene: Scene) -> None:
    scene.task(folder=APP), scene.task(folder=APP, user=MATE)

    assert all(_claim_work(scene) for _ in range(2))


def work_in_a_folder_is_left_to_its_machine(scene: Scene) -> None:
    bound = scene.task(folder=APP)
    chat = _chat_in(scene, replace(APP, path="/srv/chat"))
    scene.say(chat)
    assert _claim_work(scene, ELSEWHERE) is None
    assert _claim_reply(scene, ELSEWHERE) is None

    shared = scene.task(folder=replace(APP, path="/srv/shared", machine=""))
    elsewhere, here = _claim_work(scene, ELSEWHERE), _claim_work(scene)
    reply = _claim_reply(scene)
    assert elsewhere is not None
    assert here is not None
    assert reply is not None
    assert (elsewhere.conversation.id, here.conversation.id) == (shared.id, bound.id)
    assert reply.conversation.id == chat.id


def a_folder_that_all_machines_share_is_one_folder_whatever_machine_it_was_first_used_on(
    scene: Scene,
) -> None:
    places = [replace(APP, machine=machine) for machine in (HERE, ELSEWHERE, "")]
    waiting = [scene.task(folder=place).id for place in places]
    chat = _chat_in(scene, replace(APP, machine=ELSEWHERE))
    for machine in (HERE, ELSEWHERE, HERE):
        claim = _claim_work(scene, machine, shares_folders=True)
        assert claim is not None
        waiting.remove(claim.conversation.id)
        assert claim.conversation.folder == scene.load(claim.conversation).folder
        assert claim.conversation.folder == replace(APP, machine="")
        scene.say(chat)
        for other in (HERE, ELSEWHERE):
            assert _claim_work(scene, other, shares_folders=True) is None
            assert _claim_reply(scene, other, shares_folders=True) is None
        scene.finish(claim)
        reply = _claim_reply(scene, shares_folders=True)
        assert reply is not None
        scene.finish(reply, "Well.", served=scene.items(reply))
    assert waiting == []


def a_folder_in_use_is_in_use_also_where_machines_do_not_agree_that_they_share_it(
    scene: Scene,
) -> None:
    shared, bound = scene.task(folder=replace(APP, machine="")), scene.task(folder=APP)
    claim = _claim_work(scene, ELSEWHERE, shares_folders=True)
    assert claim is not None
    assert claim.conversation.id == shared.id
    assert _claim_work(scene) is None

    scene.finish(claim)
    claim = _claim_work(scene)
    assert claim is not None
    assert claim.conversation.folder == scene.load(bound).folder == APP
    scene.task(folder=replace(APP, machine=""))
    assert _claim_work(scene) is None
    assert _claim_work(scene, ELSEWHERE, shares_folders=True) is None


def a_shared_folder_takes_the_place_of_the_same_one_of_each_machine(scene: Scene) -> None:
    scene.user()
    tasks = [scene.task(folder=replace(APP, machine=machine)) for machine in (HERE, ELSEWHERE)]
    first = replace(ADDED, read_only=True)
    scene.run(lambda tx: tx.folders.put(USER, first))
    scene.run(lambda tx: tx.folders.put(USER, replace(ADDED, machine=ELSEWHERE)))
    assert scene.run(lambda tx: tx.folders.find(USER, APP.path, "")) == first
    shared = replace(ADDED, machine="", machine_name="", read_only=True)

    scene.run(lambda tx: tx.folders.put(USER, shared))
    assert scene.run(lambda tx: tx.folders.list(USER)) == [shared]
    assert [scene.load(task).folder for task in tasks] == [
        replace(APP, machine=machine, read_only=True) for machine in (HERE, ELSEWHERE)
    ]
    scene.run(lambda tx: tx.folders.mark_reported(USER, replace(APP, machine=""), "digest"))
    (listed,) = scene.run(lambda tx: tx.folders.list(USER))
    assert listed.reported == "digest"

    scene.run(lambda tx: tx.folders.put(USER, ADDED))
    scene.run(lambda tx: tx.folders.remove(USER, APP.path, ""))
    assert scene.run(lambda tx: tx.folders.list(USER)) == []
