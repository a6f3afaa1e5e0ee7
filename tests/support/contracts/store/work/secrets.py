"""Secrets and keys are kept as they were sealed, each under its owner."""

from backburner.core.ids import UserId
from backburner.store.tx import Tx
from support.stage.make import MATE, STRANGER, USER
from support.stage.scene import Scene

#: Bytes that are not text.
SEALED, OTHER = b"\x01\x00\xff one", b"\x01 two"


def a_secret_is_found_by_its_owner_and_name_only(scene: Scene) -> None:
    scene.user(), scene.user(MATE)
    scene.run(lambda tx: tx.secrets.put(USER, "mail/token", SEALED))
    scene.run(lambda tx: tx.secrets.put(MATE, "mail/token", OTHER))

    assert scene.run(lambda tx: tx.secrets.load(USER, "mail/token")) == SEALED
    assert scene.run(lambda tx: tx.secrets.load(MATE, "mail/token")) == OTHER
    assert scene.run(lambda tx: tx.secrets.load(STRANGER, "mail/token")) is None
    assert scene.run(lambda tx: tx.secrets.load(None, "mail/token")) is None
    assert scene.run(lambda tx: tx.secrets.load(USER, "MAIL/token")) is None


def a_secret_of_the_install_is_apart_from_those_of_users(scene: Scene) -> None:
    scene.user()
    scene.run(lambda tx: tx.secrets.put(None, "a", SEALED))
    scene.run(lambda tx: tx.secrets.put(None, "a", OTHER))

    assert scene.run(lambda tx: tx.secrets.load(None, "a")) == OTHER
    assert scene.run(lambda tx: tx.secrets.load(USER, "a")) is None
    scene.run(lambda tx: tx.secrets.remove(USER, ""))
    assert scene.run(lambda tx: tx.secrets.load(None, "a")) == OTHER


def secrets_are_deleted_by_the_beginning_of_their_name(scene: Scene) -> None:
    scene.user(), scene.user(MATE)
    names = ["mail/1", "mail/é", "mail/\U0010fffe", "MAIL/1", "mail", "mailbox", "m%il/1"]
    for owner in (USER, MATE, None):
        for name in names:
            _put(scene, owner, name)

    scene.run(lambda tx: tx.secrets.remove(USER, "mail/"))

    assert _names(scene, USER, names) == ["MAIL/1", "mail", "mailbox", "m%il/1"]
    assert _names(scene, MATE, names) == _names(scene, None, names) == names
    scene.run(lambda tx: tx.secrets.remove(None, "mail/"))
    scene.run(lambda tx: tx.secrets.remove(MATE, ""))
    assert _names(scene, None, names) == ["MAIL/1", "mail", "mailbox", "m%il/1"]
    assert _names(scene, MATE, names) == []


def secrets_are_listed_by_the_beginning_of_their_name(scene: Scene) -> None:
    scene.user(), scene.user(MATE)
    for owner in (USER, MATE, None):
        for name in ("mail/2", "mail/1", "mail", "MAIL/1"):
            _put(scene, owner, name)

    found = scene.run(lambda tx: tx.secrets.find("mail/"))

    assert found == [(MATE, "mail/1"), (MATE, "mail/2"), (USER, "mail/1"), (USER, "mail/2")]
    assert scene.run(lambda tx: tx.secrets.find("mail/", owner=USER)) == found[2:]
    assert scene.run(lambda tx: tx.secrets.find("mail/", owner=STRANGER)) == []


def the_first_key_of_an_owner_stays_until_it_is_replaced(scene: Scene) -> None:
    scene.user(), scene.user(MATE)
    for owner in (MATE, None, USER):
        assert _key(scene, owner) is None
        assert _add_key(scene, owner, SEALED)
        assert not _add_key(scene, owner, OTHER)
        assert _key(scene, owner) == SEALED

    scene.run(lambda tx: tx.secrets.put_key(USER, OTHER))
    scene.run(lambda tx: tx.secrets.put_key(None, OTHER))

    keys = [(None, OTHER), (MATE, SEALED), (USER, OTHER)]
    assert scene.run(lambda tx: tx.secrets.all_keys()) == keys
    assert scene.run(lambda tx: tx.secrets.hold_key(USER)) == OTHER
    assert scene.run(lambda tx: tx.secrets.lock_key(None)) == OTHER


def a_key_is_forgotten_with_all_that_it_seals(scene: Scene) -> None:
    scene.user(), scene.user(MATE)
    for owner in (USER, MATE, None):
        _add_key(scene, owner, SEALED)
        _put(scene, owner, "a")

    scene.run(lambda tx: tx.secrets.forget(USER))

    assert scene.run(lambda tx: tx.secrets.all_keys()) == [(None, SEALED), (MATE, SEALED)]
    assert [_names(scene, owner, ["a"]) for owner in (USER, MATE, None)] == [[], ["a"], ["a"]]
    scene.run(lambda tx: tx.secrets.forget(None))
    assert scene.run(lambda tx: tx.secrets.all_keys()) == [(MATE, SEALED)]
    assert [_names(scene, owner, ["a"]) for owner in (MATE, None)] == [["a"], []]


def an_erased_user_leaves_no_secret_and_no_key(scene: Scene) -> None:
    scene.user(), scene.user(MATE)
    for owner in (USER, MATE):
        _add_key(scene, owner, SEALED)
        _put(scene, owner, "a")

    scene.run(lambda tx: tx.personal_data.erase(USER))

    assert scene.run(lambda tx: tx.secrets.all_keys()) == [(MATE, SEALED)]
    assert scene.run(lambda tx: tx.secrets.load(USER, "a")) is None
    assert scene.run(lambda tx: tx.secrets.load(MATE, "a")) == SEALED


def _put(scene: Scene, owner: UserId | None, name: str) -> None:
    scene.run(lambda tx: tx.secrets.put(owner, name, SEALED))


def _add_key(scene: Scene, owner: UserId | None, wrapped: bytes) -> bool:
    return scene.run(lambda tx: tx.secrets.add_key(owner, wrapped))


def _key(scene: Scene, owner: UserId | None) -> bytes | None:
    return scene.run(lambda tx: tx.secrets.load_key(owner))


def _names(scene: Scene, owner: UserId | None, names: list[str]) -> list[str]:
    def find(tx: Tx) -> list[str]:
        return [name for name in names if tx.secrets.load(owner, name) is not None]

    return scene.run(find)
