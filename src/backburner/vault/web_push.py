"""Web Push: encrypts messages for one browser (RFC 8291, 8188), and signs who sent them (RFC 8292).

    message  16: salt | 4: size of a record | 1: length of the key | 65: our public key | record
    record   the payload | 2 | zeros, encrypted with AES-128-GCM as a whole

Our key pair is made for each message, and so are its salt and key. This module is imported at its
first use, because few programs need the library.
"""

import json
import os
from base64 import urlsafe_b64encode
from collections.abc import Mapping

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from backburner.core.channels.push import AUTH_BYTES, RECEIVER_KEY_BYTES
from backburner.core.errors import BadRequest

CURVE = ec.SECP256R1()
KEY_BYTES, SALT_BYTES, TAG_BYTES = 32, 16, 16
HEAD_BYTES = SALT_BYTES + 4 + 1 + 65
#: Of whole messages, so that a push service does not learn how long a text is. Services take 4096.
SIZES = (1024, 2048, 3072)
RECORD_SIZE = 4096
#: After the payload, in the only record.
DELIMITER = b"\x02"


def make_key() -> bytes:
    return _to_bytes(ec.generate_private_key(CURVE))


def public_key(key: bytes) -> bytes:
    return _to_point(_from_bytes(key))


def check_receiver(receiver_key: bytes, auth: bytes) -> None:
    if (len(receiver_key), len(auth)) != (RECEIVER_KEY_BYTES, AUTH_BYTES):
        raise _bad_keys()
    _read_point(receiver_key)


def encrypt(payload: bytes, *, receiver_key: bytes, auth: bytes) -> bytes:
    """Encrypt a payload, padded so that the message has one of `SIZES`."""
    used = HEAD_BYTES + len(payload) + len(DELIMITER) + TAG_BYTES
    size = next((size for size in SIZES if size >= used), None)
    if size is None:
        raise ValueError(f"The message has {used} bytes.")
    ours, salt = ec.generate_private_key(CURVE), os.urandom(SALT_BYTES)
    return seal(payload, bytes(size - used), receiver_key, auth, ours=ours, salt=salt)


def seal(
    payload: bytes,
    padding: bytes,
    receiver_key: bytes,
    auth: bytes,
    *,
    ours: ec.EllipticCurvePrivateKey,
    salt: bytes,
) -> bytes:
    """Encrypt with a key pair and a salt that are used for nothing else."""
    our_point = _to_point(ours)
    shared = ours.exchange(ec.ECDH(), _read_point(receiver_key))
    about = b"WebPush: info\0" + receiver_key + our_point
    secret = _derive(shared, salt=auth, about=about, size=32)
    key = _derive(secret, salt=salt, about=b"Content-Encoding: aes128gcm\0", size=16)
    nonce = _derive(secret, salt=salt, about=b"Content-Encoding: nonce\0", size=12)
    head = salt + RECORD_SIZE.to_bytes(4) + bytes([len(our_point)]) + our_point
    return head + AESGCM(key).encrypt(nonce, payload + DELIMITER + padding, None)


def sign(key: bytes, claims: Mapping[str, object]) -> str:
    """Return the Authorization header with a token of these claims, signed with ES256."""
    private = _from_bytes(key)
    parts = [json.dumps(part).encode() for part in ({"typ": "JWT", "alg": "ES256"}, claims)]
    signed = ".".join(map(to_text, parts))
    r, s = decode_dss_signature(private.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    token = f"{signed}.{to_text(r.to_bytes(KEY_BYTES) + s.to_bytes(KEY_BYTES))}"
    return f"vapid t={token}, k={to_text(_to_point(private))}"


def to_text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _derive(secret: bytes, *, salt: bytes, about: bytes, size: int) -> bytes:
    return HKDF(hashes.SHA256(), size, salt, about).derive(secret)


def _to_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_numbers().private_value.to_bytes(KEY_BYTES)


def _from_bytes(key: bytes) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(key), CURVE)


def _to_point(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _read_point(point: bytes) -> ec.EllipticCurvePublicKey:
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(CURVE, point)
    except ValueError:
        raise _bad_keys() from None


def _bad_keys() -> BadRequest:
    return BadRequest(
        "The keys of this subscription are not those of a browser.",
        hint="Send `p256dh` and `auth` as the browser gives them.",
    )
