"""Seals bytes with AES-256-GCM, bound to what they are and whose.

    sealed   1 byte: version of this layout | 12: nonce | ciphertext | 16: its tag
    wrapped  1 byte: version of this layout | 1: length of the id | id of the master key | sealed

A sealed value does not contain what it is bound to: as that of another owner or name it cannot be
opened. This module is imported at its first use, because few programs need the library.
"""

import json
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from backburner.core.ids import UserId
from backburner.vault.master_keys import MasterKey, key_id_of, wrapped_key_of

VERSION = b"\x01"
NONCE_BYTES, TAG_BYTES = 12, 16


def make_data_key() -> bytes:
    return AESGCM.generate_key(bit_length=256)


def seal_secret(key: bytes, owner: UserId | None, name: str, secret: bytes) -> bytes:
    return _seal(key, secret, "secret", owner, name)


def open_secret(key: bytes, owner: UserId | None, name: str, sealed: bytes) -> bytes | None:
    """Return the secret; None: it was changed, or sealed by another key or as something else."""
    return _open(key, sealed, "secret", owner, name)


def wrap(master: MasterKey, owner: UserId | None, key: bytes) -> bytes:
    head = VERSION + bytes([len(master.id)]) + master.id.encode()
    return head + _seal(master.secret, key, "data key", owner, master.id)


def unwrap(master: MasterKey, owner: UserId | None, wrapped: bytes) -> bytes | None:
    """Return a data key; None: it was changed, or wrapped by another key or for another owner."""
    if wrapped[:1] != VERSION or key_id_of(wrapped) != master.id:
        return None
    return _open(master.secret, wrapped_key_of(wrapped), "data key", owner, master.id)


def _seal(key: bytes, plain: bytes, *bound_to: str | None) -> bytes:
    nonce = os.urandom(NONCE_BYTES)
    return VERSION + nonce + AESGCM(key).encrypt(nonce, plain, _associate(bound_to))


def _open(key: bytes, sealed: bytes, *bound_to: str | None) -> bytes | None:
    if sealed[:1] != VERSION or len(sealed) < 1 + NONCE_BYTES + TAG_BYTES:
        return None
    nonce, ciphertext = sealed[1 : 1 + NONCE_BYTES], sealed[1 + NONCE_BYTES :]
    try:
        return AESGCM(key).decrypt(nonce, ciphertext, _associate(bound_to))
    except InvalidTag:
        return None


def _associate(bound_to: tuple[str | None, ...]) -> bytes:
    # In JSON no two lists are the same bytes, whatever is in the names.
    return json.dumps(["backburner", *bound_to]).encode()
