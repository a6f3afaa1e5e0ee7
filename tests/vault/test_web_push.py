"""Web Push: messages that their browser can read, and nobody else, with the vectors of the RFCs."""

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from support.servers.push_service import (
    CURVE,
    PushServer,
    decode,
    decrypt_push,
    decrypt_record,
    encode,
    verify_token,
)

from backburner.core.channels.push import MAX_PAYLOAD_BYTES
from backburner.core.errors import BadRequest
from backburner.vault import web_push

#: RFC 8291, section 5 and appendix A.
PLAIN = b"When I grow up, I want to be a watermelon"
OUR_KEY = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
OUR_POINT = (
    "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8"
)
THEIR_KEY = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
THEIR_POINT = (
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
)
AUTH, SALT = "BTBZMqHH6r4Tts7J_aSIgg", "DGv6ra1nlYgDCS1FRnbzlw"
MESSAGE = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27ml"
    "mlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT"
    "pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def private(key: str) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(decode(key)), CURVE)


def test_a_message_is_encrypted_as_in_the_rfc() -> None:
    sealed = web_push.seal(
        PLAIN,
        b"",
        decode(THEIR_POINT),
        decode(AUTH),
        ours=private(OUR_KEY),
        salt=decode(SALT),
    )

    assert encode(sealed) == MESSAGE
    assert web_push.public_key(decode(OUR_KEY)) == decode(OUR_POINT)


def test_the_reader_of_these_tests_reads_what_the_rfcs_have() -> None:
    assert decrypt_push(decode(MESSAGE), private(THEIR_KEY), decode(AUTH)) == PLAIN
    # RFC 8188, section 3.1.
    body = "I1BsxtFttlv3u_Oo94xnmwAAEAAA-NAVub2qFgBEuQKRapoZu-IxkIva3MEB1PD-ly8Thjg"
    assert decrypt_record(decode(body), decode("yqdlZ-tYemfogSmv7Ws5PQ")) == b"I am the walrus"


def test_the_checker_of_these_tests_takes_the_token_of_the_rfc() -> None:
    # RFC 8292, section 2.4.
    signed = (
        "eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJl"
        "eHAiOjE0NTM1MjM3NjgsInN1YiI6Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0.i3CYb7t4xfxCDquptFOep"
        "C9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1JrErtmysazNjjvW2L9OkSSHzvoD1oA"
    )
    key = "BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs"

    assert verify_token(signed, decode(key)) == {
        "aud": "https://push.example.net",
        "exp": 1453523768,
        "sub": "mailto:push@example.com",
    }


@pytest.mark.parametrize(
    ("size", "message_size"),
    [(0, 1024), (1024 - 103, 1024), (1024 - 102, 2048), (MAX_PAYLOAD_BYTES, 3072)],
)
def test_a_message_has_one_of_a_few_sizes_and_only_its_browser_reads_it(
    size: int, message_size: int
) -> None:
    browser, other = (PushServer().browser(name) for name in ("one", "other"))
    payload = b"x" * size

    sealed = [
        web_push.encrypt(payload, receiver_key=browser.p256dh, auth=browser.auth) for _ in range(2)
    ]

    assert [len(one) for one in sealed] == [message_size] * 2
    assert sealed[0][:86] != sealed[1][:86]
    assert [browser.read(one) for one in sealed] == [payload] * 2
    with pytest.raises(InvalidTag):
        other.read(sealed[0])


def test_a_payload_that_is_too_long_is_not_encrypted() -> None:
    browser = PushServer().browser()

    with pytest.raises(ValueError, match="3073 bytes"):
        web_push.encrypt(
            b"x" * (MAX_PAYLOAD_BYTES + 1), receiver_key=browser.p256dh, auth=browser.auth
        )


def test_a_token_is_signed_with_the_key_that_it_names() -> None:
    key = web_push.make_key()
    claims = {"aud": "https://push.example.net", "exp": 1, "sub": "mailto:a@b.example"}

    scheme, token, named = web_push.sign(key, claims).replace(",", "").split(" ")

    assert scheme == "vapid"
    assert decode(named.removeprefix("k=")) == web_push.public_key(key)
    assert verify_token(token.removeprefix("t="), web_push.public_key(key)) == claims
    assert len(key) == 32
    assert key != web_push.make_key()


@pytest.mark.parametrize(
    ("receiver_key", "auth"),
    [
        (b"", b"a" * 16),
        (b"\x04" + b"\x01" * 64, b"a" * 16),
        (decode(THEIR_POINT)[:-1], b"a" * 16),
        (decode(THEIR_POINT), b"a" * 15),
        (decode(THEIR_POINT), b""),
        (b"\x00", b"a" * 16),
        # Compressed: it is a point, but not what the browser derives its secret from.
        (bytes([2 + decode(THEIR_POINT)[-1] % 2]) + decode(THEIR_POINT)[1:33], b"a" * 16),
    ],
)
def test_keys_that_are_none_are_refused(receiver_key: bytes, auth: bytes) -> None:
    with pytest.raises(BadRequest, match="keys of this subscription"):
        web_push.check_receiver(receiver_key, auth)


def test_the_keys_of_a_browser_are_taken() -> None:
    web_push.check_receiver(decode(THEIR_POINT), decode(AUTH))
