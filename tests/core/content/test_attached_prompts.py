"""Files of messages in prompts and transitions: listed as data, and never after a fresh start."""

from datetime import timedelta

from support.stage import make
from support.stage.make import NOON, OTHER

from backburner.core import transitions
from backburner.core.content.attachment import FILES, dump_files, load_files
from backburner.core.content.file import FileReference
from backburner.core.conversation import Message, MessageRole, Source
from backburner.core.ids import MessageId, new_item_id
from backburner.core.prompt import (
    for_reply,
    format_message,
    has_outside_text,
    prepend_attachments,
    without_outside,
)
from backburner.core.question import QuestionType
from backburner.core.run import Item, ItemKind, RunKind

FILE = FileReference(digest="9f86d081" * 8, size=3, media_type="image/png", name="a.png")


def message(role: MessageRole = MessageRole.USER) -> Message:
    return Message(
        id=MessageId("m_1"),
        conversation_id=OTHER,
        role=role,
        content="Look.",
        source=Source.CHAT,
        created_at=NOON,
        files=(FILE,),
    )


def item(kind: ItemKind, **content: object) -> Item:
    return Item(
        id=new_item_id(),
        kind=kind,
        run_kind=RunKind.REPLY,
        content={**content, **dump_files([FILE])},
        arrived_at=NOON,
    )


def test_a_message_lists_its_files_as_data() -> None:
    text = format_message(message())

    assert text.startswith("User (chat): Look.\n  <outside ")
    assert "  a-9f86d081.png (image/png, 3 bytes)\n" in text


def test_what_a_run_is_about_lists_its_files_as_data() -> None:
    items = [
        item(ItemKind.MESSAGE, text="Look."),
        item(ItemKind.ANSWER, prompt="Which one?", answer="This one."),
    ]
    text = for_reply(
        make.conversation(),
        recent=(),
        items=items,
        done_before=(),
        now=NOON,
        zone="UTC",
        fresh=False,
    )

    for said in ("The user says: Look.", "The user answered: This one."):
        assert f"{said}\n<outside " in text
    assert text.count("a-9f86d081.png") == 2


def test_attachments_are_outside_text() -> None:
    assert has_outside_text([message()], [])
    assert not has_outside_text([message(MessageRole.ASSISTANT)], [])
    assert has_outside_text([], [item(ItemKind.MESSAGE)])


def test_after_a_fresh_start_earlier_messages_have_no_files() -> None:
    later = NOON + timedelta(seconds=1)

    (before,) = without_outside([message()], later)

    assert (before.content, before.files) == ("Look.", ())
    assert without_outside([message()], NOON - timedelta(seconds=1)) == [message()]
    assert without_outside([message()], None) == [message()]


def test_contents_stand_before_the_prompt() -> None:
    assert prepend_attachments("", "Text.") == "Text."
    assert prepend_attachments("x", "Text.") == "# Attached files\nx\n\nText."


def test_a_message_that_is_an_answer_passes_its_files_on() -> None:
    asked = make.question(type=QuestionType.INPUT, options=())
    talk = make.conversation(questions=(asked,))

    step = transitions.receive_message(
        talk, "This one.", message_id=MessageId("m_1"), now=NOON, files=(FILE,)
    )

    (told,) = step.inbox
    assert (told.kind, load_files(told.content)) == (ItemKind.ANSWER, (FILE,))
    assert [one.files for one in step.messages if one.role is MessageRole.USER] == [(FILE,)]


def test_a_message_of_files_alone_gives_no_title() -> None:
    step = transitions.receive_message(
        make.conversation(title=""), "", message_id=MessageId("m_1"), now=NOON, files=(FILE,)
    )

    assert step.conversation.title == ""
    assert FILES in step.inbox[0].content
