"""Limits of a session: sizes, counts and times."""

from dataclasses import dataclass
from datetime import timedelta

from backburner.core.connections.connection import MAX_CALL_TIMEOUT


@dataclass(frozen=True, slots=True)
class AnswerLimit:
    """The largest answer, which nothing else can interrupt while it is read."""

    size: int
    #: Roughly: small values take many times their size in memory, and the time to read them.
    values: int

    def is_passed(self, size: int, values: int) -> bool:
        return size > self.size or values > self.values


#: A file of 20 MB in base64 is smaller.
ANSWER_LIMIT = AnswerLimit(size=32 * 2**20, values=500_000)
#: Of a page of tools: all of it is looked at.
PAGE_LIMIT = AnswerLimit(size=8 * 2**20, values=200_000)
#: Of the body of a response that reports an error.
ERROR_LIMIT = AnswerLimit(size=2**16, values=10_000)
MAX_TOOLS = 2_000
MAX_TOOL_PAGES = 40
MAX_DESCRIPTION_CHARS = 10_000
MAX_SCHEMA_BYTES = 200_000
#: Of all definitions together.
MAX_LIST_BYTES = 4 * 2**20
#: Tools that are named with the reason for which they were left out; others are counted.
MAX_LEFT_OUT = 100
#: Of the text, the parts, the files and the links of one result.
MAX_TEXT_CHARS = 2_000_000
MAX_PARTS = 10_000
MAX_BLOBS = 100
MAX_LINKS = 500
#: Of what a server says in errors and in questions to the user.
MAX_WORDS_CHARS = 2_000
#: Of the state that a server wants back with answers.
MAX_STATE_CHARS = 100_000
MAX_INPUT_REQUESTS = 5
MAX_INPUT_FIELDS = 30
MAX_INPUT_OPTIONS = 200
#: Of all of a question, with what nobody is shown.
MAX_INPUT_VALUES = 50_000
#: Requests of the server to us in one session, such as pings.
MAX_SERVER_REQUESTS = 1_000
#: Streams that are opened for messages of the server, or after a break, in one session.
MAX_STREAMS = 100
#: Rounds of one call in which the server wants nothing but to be asked again.
MAX_ROUNDS = 10
ROUND_SECONDS = 0.2

CONNECT_TIMEOUT = timedelta(seconds=20)
LIST_TIMEOUT = timedelta(seconds=60)
#: For ending a session politely, before its tasks are cancelled.
CLOSE_TIMEOUT = timedelta(seconds=2)
#: Without a byte from the server, after which a connection is given up: a call may be silent.
IDLE_TIMEOUT = MAX_CALL_TIMEOUT + timedelta(minutes=5)


def find_limit(method: str) -> AnswerLimit:
    return PAGE_LIMIT if method == "tools/list" else ANSWER_LIMIT


def count_values(data: bytes) -> int:
    """Count the values of JSON text, and the commas and brackets in its strings."""
    return data.count(b",") + data.count(b"[") + data.count(b"{")
