"""The envelope: with the right key, and yet not for another owner, name or use."""

from support.stage.make import MATE, USER
from support.stage.vaults import CANARY, ONE, TWO

from backburner.core.ids import UserId
from backburner.vault import envelope
from backburner.vault.master_keys import MasterKey, wrapped_key_of


def test_a_secret_is_bound_to_its_owner_and_name_whatever_the_key() -> None:
    key = envelope.make_data_key()
    sealed = envelope.seal_secret(key, USER, "a", CANARY)

    assert envelope.open_secret(key, USER, "a", sealed) == CANARY
    for owner, name in ((MATE, "a"), (None, "a"), (USER, "b"), (USER, "")):
        assert envelope.open_secret(key, owner, name, sealed) is None
    assert envelope.open_secret(envelope.make_data_key(), USER, "a", sealed) is None


def test_owner_and_name_cannot_be_divided_in_another_way() -> None:
    key = envelope.make_data_key()
    sealed = envelope.seal_secret(key, USER, 'a", "b', CANARY)

    assert envelope.open_secret(key, UserId(f'{USER}", "a'), "b", sealed) is None
    nameless = envelope.seal_secret(key, None, "a", CANARY)
    assert envelope.open_secret(key, UserId("None"), "a", nameless) is None
    assert envelope.open_secret(key, UserId("null"), "a", nameless) is None


def test_a_key_is_bound_to_its_owner_and_to_the_id_of_its_master_key() -> None:
    key = envelope.make_data_key()
    wrapped = envelope.wrap(ONE, USER, key)

    assert envelope.unwrap(ONE, USER, wrapped) == key
    assert envelope.unwrap(ONE, MATE, wrapped) is None
    assert envelope.unwrap(ONE, None, wrapped) is None
    assert envelope.unwrap(TWO, USER, wrapped) is None
    # The same master key under another id, and the id in the row changed to it.
    renamed = MasterKey("uno", ONE.secret)
    assert envelope.unwrap(renamed, USER, wrapped.replace(b"one", b"uno")) is None


def test_a_key_is_no_secret_and_a_secret_is_no_key() -> None:
    key = envelope.make_data_key()
    wrapped = envelope.wrap(ONE, USER, key)
    sealed = envelope.seal_secret(ONE.secret, USER, "one", key)

    assert envelope.open_secret(ONE.secret, USER, "one", wrapped_key_of(wrapped)) is None
    assert envelope.unwrap(ONE, USER, wrapped[:5] + sealed) is None


def test_data_keys_have_256_bits_and_differ() -> None:
    keys = {envelope.make_data_key() for _ in range(10)}

    assert len(keys) == 10
    assert {len(key) for key in keys} == {32}
