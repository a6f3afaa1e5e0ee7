"""The push service of a browser, on loopback, and browsers that take messages from it.

What it is sent is checked and decrypted here with an implementation of its own, after RFC 8030,
8188, 8291 and 8292: the program's must not be asked whether it is right.
"""

import asyncio
import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CURVE = ec.SECP256R1()
MAX_BODY_BYTES = 4096


@dataclass(frozen=True)
class Answer:
    """What the service says to one message.

    `text` None: nothing, ever. `status` 0: nothing, and it hangs up.
    """

    status: int = 201
    text: str | None = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Delivered:
    """A message as the browser gets it."""

    payload: dict[str, Any]
    headers: Mapping[str, str]
    #: Of the whole message, encrypted.
    size: int
    claims: dict[str, Any]


class Browser:
    """A browser with one subscription."""

    def __init__(self, service: "PushServer", name: str) -> None:
        self._key = ec.generate_private_key(CURVE)
        self._auth = hashlib.sha256(name.encode()).digest()[:16]
        self.endpoint = f"http://127.0.0.1:{service.port}/send/{name}"
        #: The server key of its page; it takes messages signed by no other.
        self.server_key: bytes | None = None
        self.messages: list[Delivered] = []
        self.is_gone = False

    @property
    def p256dh(self) -> bytes:
        return self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    @property
    def auth(self) -> bytes:
        return self._auth

    def to_json(self) -> dict[str, Any]:
        """Give the subscription as a page sends it."""
        keys = {"p256dh": encode(self.p256dh), "auth": encode(self.auth)}
        return {"endpoint": self.endpoint, "expirationTime": None, "keys": keys}

    def read(self, body: bytes) -> bytes:
        return decrypt_push(body, self._key, self._auth)


@dataclass
class PushServer:
    port: int = 0
    #: The time by which tokens are judged; None: that of the machine.
    now: datetime | None = None
    browsers: dict[str, Browser] = field(default_factory=dict)
    #: Said to the next messages, before anything is taken.
    answers: deque[Answer] = field(default_factory=deque)
    #: The paths of all requests.
    asked: list[str] = field(default_factory=list)
    was_asked: asyncio.Event = field(default_factory=asyncio.Event)
    #: What was wrong with requests.
    faults: list[str] = field(default_factory=list)
    #: Ends it before its time.
    stop: Callable[[], None] = lambda: None

    def browser(self, name: str = "one") -> Browser:
        browser = self.browsers[f"/send/{name}"] = Browser(self, name)
        return browser

    def take(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        self.asked.append(path)
        self.was_asked.set()
        if self.answers:
            return self.answers.popleft()
        browser = self.browsers.get(path)
        if browser is None:
            return Answer(HTTPStatus.NOT_FOUND)
        if browser.is_gone:
            return Answer(HTTPStatus.GONE)
        try:
            delivered = self._check(browser, headers, body)
        except RefusedError as error:
            self.faults.append(str(error))
            reason = json.dumps({"reason": "BadJwtToken"})
            return Answer(error.status, reason)
        browser.messages.append(delivered)
        return Answer(201, "", {"location": f"http://127.0.0.1:{self.port}/message/1"})

    def _check(self, browser: Browser, headers: Mapping[str, str], body: bytes) -> Delivered:
        if headers.get("content-encoding") != "aes128gcm" or len(body) > MAX_BODY_BYTES:
            raise RefusedError(413, "The body is not encrypted, or too long.")
        if not headers.get("ttl", "").isdecimal():
            raise RefusedError(400, "There is no TTL.")
        topic = headers.get("topic", "")
        if len(topic) > 32 or not topic.replace("-", "").replace("_", "").isalnum():
            raise RefusedError(400, f"The topic is {topic!r}.")
        claims = self._check_token(browser, headers.get("authorization", ""))
        payload = json.loads(browser.read(body))
        return Delivered(payload, headers, len(body), claims)

    def _check_token(self, browser: Browser, authorization: str) -> dict[str, Any]:
        scheme, _, rest = authorization.partition(" ")
        parts = dict(part.strip().split("=", 1) for part in rest.split(",") if "=" in part)
        if scheme != "vapid" or parts.keys() != {"t", "k"}:
            raise RefusedError(401, "There is no token.")
        key = decode(parts["k"])
        if browser.server_key is not None and browser.server_key != key:
            raise RefusedError(403, "The key is not that of the subscription.")
        claims = verify_token(parts["t"], key)
        now = self.now or datetime.now(UTC)
        if claims["aud"] != f"http://127.0.0.1:{self.port}":
            raise RefusedError(403, f"The token is for {claims['aud']}.")
        if not now.timestamp() < claims["exp"] <= (now + timedelta(days=1)).timestamp():
            raise RefusedError(403, "The token has expired, or lasts more than a day.")
        if not claims.get("sub", "").startswith(("mailto:", "https:")):
            raise RefusedError(403, "The token says nobody who could be reached.")
        return claims


class RefusedError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def verify_token(token: str, key: bytes) -> dict[str, Any]:
    """Return the claims of a token that this key has signed."""
    head, claims, signature = token.split(".")
    assert json.loads(decode(head)) == {"typ": "JWT", "alg": "ES256"}
    raw = decode(signature)
    assert len(raw) == 64
    signed = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    public = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, key)
    public.verify(signed, f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
    found: dict[str, Any] = json.loads(decode(claims))
    return found


def decrypt_push(body: bytes, key: ec.EllipticCurvePrivateKey, auth: bytes) -> bytes:
    """Decrypt a message with the keys of its browser (RFC 8291)."""
    theirs = body[21 : 21 + body[20]]
    ours = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    shared = key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(CURVE, theirs))
    about = b"WebPush: info\x00" + ours + theirs
    return decrypt_record(body, hkdf(auth, shared, about, 32))


def decrypt_record(body: bytes, secret: bytes) -> bytes:
    """Decrypt what is encoded as aes128gcm, in one record (RFC 8188)."""
    salt, size = body[:16], int.from_bytes(body[16:20])
    record = body[21 + body[20] :]
    assert 18 <= len(record) <= size
    key = hkdf(salt, secret, b"Content-Encoding: aes128gcm\x00", 16)
    nonce = hkdf(salt, secret, b"Content-Encoding: nonce\x00", 12)
    padded = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\x00")
    assert padded.endswith(b"\x02")
    return padded[:-1]


def hkdf(salt: bytes, secret: bytes, about: bytes, size: int) -> bytes:
    key = hmac.digest(salt, secret, "sha256")
    return hmac.digest(key, about + b"\x01", "sha256")[:size]


def encode(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


@asynccontextmanager
async def push_service(now: datetime | None = None) -> AsyncIterator[PushServer]:
    service = PushServer(now=now)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            request, *lines = head.rstrip("\r\n").split("\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines)
            }
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            answer = service.take(request.split()[1], headers, body)
            if answer.text is None:
                await reader.read()
            elif answer.status:
                writer.write(_write(answer))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        service.port, service.stop = server.sockets[0].getsockname()[1], server.close
        yield service


def _write(answer: Answer) -> bytes:
    data = (answer.text or "").encode("latin-1")
    heads = {"content-length": str(len(data)), "connection": "close", **answer.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in heads.items())
    return f"HTTP/1.1 {answer.status} Said\r\n{lines}\r\n".encode("latin-1") + data
