"""Ids: a letter for the kind, then 26 letters and digits.

`new_*` makes a fresh id: the time, then random bits. Ids sort by the time at which they were made,
so new rows go to the end of every index. `derive_*` makes an id from the values that identify an
object, so that a pure function can name what it creates, and a repeated step gives the same id
again; derived ids have no order.
"""

import hashlib
import time
from typing import NewType
from uuid import uuid4

CallId = NewType("CallId", str)
ConnectionId = NewType("ConnectionId", str)
ConversationId = NewType("ConversationId", str)
GrantId = NewType("GrantId", str)
ItemId = NewType("ItemId", str)
MessageId = NewType("MessageId", str)
NoticeId = NewType("NoticeId", str)
PushId = NewType("PushId", str)
QuestionId = NewType("QuestionId", str)
RunId = NewType("RunId", str)
UserId = NewType("UserId", str)

#: Without i, l, o and u, which are easily confused when an id is read out or typed.
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
#: Of 130 bits; those above are the microseconds since 1970, up to the year 2112. The time comes
#: first, so that ids made at different times differ in their first characters.
_RANDOM_BITS = 78


def new_mark_key() -> bytes:
    """Make a key for marks that nobody else can compute."""
    return uuid4().bytes


def new_audit_id() -> str:
    return _new("a")


def new_batch_id() -> str:
    return _new("b")


def new_call_id() -> CallId:
    return CallId(_new("t"))


def new_connection_id() -> ConnectionId:
    return ConnectionId(_new("x"))


def new_conversation_id() -> ConversationId:
    return ConversationId(_new("c"))


def new_credential_id() -> str:
    return _new("k")


def new_item_id() -> ItemId:
    return ItemId(_new("i"))


def new_message_id() -> MessageId:
    return MessageId(_new("m"))


def new_notice_id() -> NoticeId:
    return NoticeId(_new("n"))


def new_push_id() -> PushId:
    return PushId(_new("p"))


def new_run_id() -> RunId:
    return RunId(_new("r"))


def new_session_id() -> str:
    """Make an agent session id, for engines that do not make their own."""
    return _new("s")


def new_user_id() -> UserId:
    return UserId(_new("u"))


def derive_question_id(*values: str | int) -> QuestionId:
    return QuestionId(_derive("q", values))


def derive_batch_id(*values: str | int) -> str:
    return _derive("b", values)


def derive_grant_id(*values: str | int) -> GrantId:
    return GrantId(_derive("g", values))


def _new(kind: str) -> str:
    random_bits = uuid4().int % (1 << _RANDOM_BITS)
    return f"{kind}_{_encode(time.time_ns() // 1000 << _RANDOM_BITS | random_bits)}"


def _derive(kind: str, values: tuple[str | int, ...]) -> str:
    # repr keeps ("ab", "c") and ("a", "bc") apart.
    digest = hashlib.sha256(repr((kind, values)).encode()).digest()
    return f"{kind}_{_encode(int.from_bytes(digest[:16]))}"


def _encode(number: int) -> str:
    return "".join(_DIGITS[(number >> shift) & 31] for shift in range(125, -1, -5))
