"""The summary of an agent's session that became too long, from which the next one starts.

The agent writes it in fixed parts, and names the messages of the user that still bind: their text
is copied, so that no summary rewords it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from backburner.core.conversation import Message, MessageRole, Source
from backburner.core.ids import MessageId
from backburner.core.prompt import quote_outside, truncate

#: About 2,000 tokens for all parts together.
MAX_SUMMARY_CHARS = 8_000
#: Of the messages that are copied, each and together.
MAX_COPIED_CHARS = 2_000
MAX_ALL_COPIED_CHARS = 8_000
#: Messages of the user among which the agent chooses.
MAX_OFFERED_MESSAGES = 50
_MAX_OFFERED_CHARS = 200

PARTS = {
    "goal": "Goal",
    "decisions": "Decisions",
    "facts": "Facts",
    "open_ends": "Open ends",
    "next_step": "Next step",
}
_MESSAGES = "user_messages"

SUMMARY_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in PARTS},
        _MESSAGES: {"type": "array", "items": {"type": "string"}},
    },
    "required": list(PARTS),
    "additionalProperties": False,
}

_REQUEST = f"""\
# Summary
This session has become too long and ends here. The next one starts from your summary, the state of
the work and the last messages. Call no tool. Write each part in a few sentences, all of them in at
most {MAX_SUMMARY_CHARS:,} characters: goal, decisions, facts, open_ends, next_step. In
{_MESSAGES} give the ids of the messages below in which the user said something that still binds;
they are copied word by word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedMessage:
    id: MessageId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSummary:
    """A summary before it is stored."""

    session_id: str
    text: str
    messages: tuple[CopiedMessage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(NewSummary):
    #: Its session had read outside text.
    outside: bool
    created_at: datetime


def offer_messages(messages: Iterable[Message]) -> Sequence[Message]:
    """Select the last messages that the user wrote."""
    written = [
        message
        for message in messages
        if message.role is MessageRole.USER
        and message.source is Source.CHAT
        and not message.outside
    ]
    return written[-MAX_OFFERED_MESSAGES:]


def request_summary(offered: Iterable[Message]) -> str:
    """Build the prompt that asks for a summary."""
    lines = [
        f"{message.id}: {truncate(' '.join(message.content.split()), _MAX_OFFERED_CHARS)}"
        for message in offered
    ]
    return "\n".join([_REQUEST, *(["", "# The messages of the user", *lines] if lines else [])])


def parse_summary(
    written: object, *, session_id: str, offered: Sequence[Message]
) -> NewSummary | None:
    """Read a summary; None if it has no text. Ids of other messages are ignored."""
    if not isinstance(written, Mapping):
        return None
    room = MAX_SUMMARY_CHARS // len(PARTS)
    texts = {name: written.get(name) for name in PARTS}
    lines = [
        truncate(f"{PARTS[name]}: {text.strip()}", room)
        for name, text in texts.items()
        if isinstance(text, str) and text.strip()
    ]
    if not lines:
        return None
    named = written.get(_MESSAGES)
    messages = _copy(named if isinstance(named, list) else (), offered)
    return NewSummary(session_id=session_id, text="\n".join(lines), messages=messages)


def format_summary(summary: NewSummary) -> str:
    """Format a summary for the prompt of the session that starts from it, as data."""
    quoted = quote_outside("summary", summary.text)
    parts = [f"# Summary of the session before\n{quoted}"]
    if summary.messages:
        said = "\n".join("\n  ".join(f"- {one.text}".splitlines()) for one in summary.messages)
        parts.append(f"# Earlier messages of the user that still bind\n{said}")
    return "\n\n".join(parts)


def _copy(ids: Iterable[object], offered: Sequence[Message]) -> tuple[CopiedMessage, ...]:
    """Copy the newest of the named messages that fit, oldest first."""
    named = {text for text in ids if isinstance(text, str)}
    copied, room = list[CopiedMessage](), MAX_ALL_COPIED_CHARS
    for message in reversed(offered):
        if message.id in named:
            text = truncate(message.content, MAX_COPIED_CHARS)
            room -= len(text)
            if room < 0:
                break
            copied.insert(0, CopiedMessage(id=message.id, text=text))
    return tuple(copied)
