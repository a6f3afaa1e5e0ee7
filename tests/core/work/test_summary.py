"""Summaries of sessions: the parts, and the messages that are copied word by word."""

from support.stage.make import CONVERSATION, NOON

from backburner.core.conversation import Message, MessageRole, Source
from backburner.core.ids import MessageId
from backburner.core.work.summary import (
    MAX_COPIED_CHARS,
    MAX_SUMMARY_CHARS,
    PARTS,
    CopiedMessage,
    format_summary,
    offer_messages,
    parse_summary,
    request_summary,
)


def said(number: int, text: str, *, outside: bool = False, **more: object) -> Message:
    fields = {"role": MessageRole.USER, "source": Source.CHAT, **more}
    return Message(
        id=MessageId(f"m_{number}"),
        conversation_id=CONVERSATION,
        content=text,
        created_at=NOON,
        outside=outside,
        **fields,  # type: ignore[arg-type]
    )


def test_only_messages_that_the_user_wrote_are_offered() -> None:
    own = said(1, "Never restart\na build.")
    others = [
        said(2, "Hello.", role=MessageRole.ASSISTANT),
        said(3, "A report.", source=Source.WORKER),
        said(4, "A mail.", outside=True),
    ]

    assert offer_messages([own, *others]) == [own]
    assert "m_1: Never restart a build." in request_summary([own])
    assert "# The messages of the user" not in request_summary([])


def test_the_words_of_the_user_are_copied_and_unknown_ids_are_ignored() -> None:
    offered = [said(1, "Never restart a build."), said(2, "Thanks.")]
    written = {"goal": "Watch.", "facts": "", "user_messages": ["m_1", "m_9", 7]}
    summary = parse_summary(written, session_id="s", offered=offered)

    assert summary is not None
    assert summary.text == "Goal: Watch."
    assert summary.messages == (CopiedMessage(id=MessageId("m_1"), text="Never restart a build."),)
    text = format_summary(summary)
    assert "<outside " in text
    assert text.endswith("# Earlier messages of the user that still bind\n- Never restart a build.")


def test_a_summary_is_bounded() -> None:
    offered = [said(number, "x" * 5_000) for number in range(9)]
    written = dict.fromkeys(PARTS, "y" * 9000)
    named = {**written, "user_messages": [message.id for message in offered]}
    summary = parse_summary(named, session_id="s", offered=offered)

    assert summary is not None
    assert len(summary.text) <= MAX_SUMMARY_CHARS + len(PARTS)
    assert [one.id for one in summary.messages] == ["m_5", "m_6", "m_7", "m_8"]
    assert all(len(one.text) == MAX_COPIED_CHARS for one in summary.messages)


def test_what_has_no_text_is_no_summary() -> None:
    for written in (None, "Goal: watch.", {}, {"goal": " ", "facts": 7}):
        assert parse_summary(written, session_id="s", offered=[]) is None
    plain = parse_summary({"goal": "Watch.", "user_messages": "m_1"}, session_id="s", offered=[])
    assert plain is not None
    assert "that still bind" not in format_summary(plain)
