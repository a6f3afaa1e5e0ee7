"""What is sent arrives once, whatever it says, and nothing is left of it here."""

import asyncio
from typing import Any

from backburner.core.errors import ChannelFailed
from backburner.core.notice import NoticeKind
from backburner.core.validation import hidden_characters
from support.contracts.channel.subject import BOUND, Subject, Trouble, failure, message

#: Texts that agents, pages and mails may bring.
HOSTILE = (
    "",
    " \n\t ",
    "\0\x07\x1b[2J",
    "\u202egnp.exe\u2066",
    "\ud800 half of a pair",
    "@everyone <@123> [link](javascript:alert(1)) <script>alert(1)</script>",
    '"}, {"title": "injected"',
    "\r\nX-Injected: yes\r\n\r\nGET / HTTP/1.1",
    "```\n" * 500,
    "\U0001f600" * 20_000,
    "a" * 100_000,
    "{title} %s ${jndi:ldap://x} {{7*7}}",
)


async def a_message_arrives_once_with_its_title_and_text(subject: Subject) -> None:
    await _send(subject, "All green.")

    (received,) = subject.received()
    assert "watch" in received.title
    assert "All green." in received.text


async def messages_of_every_kind_arrive(subject: Subject) -> None:
    for kind in (*NoticeKind, None):
        await subject.channel.send(message(subject, f"Of {kind}.", kind=kind))

    texts = [received.text for received in subject.received()]
    assert len(texts) == len(NoticeKind) + 1
    for kind, text in zip((*NoticeKind, None), texts, strict=True):
        assert f"Of {kind}." in text


async def messages_sent_at_once_arrive_once_each(subject: Subject) -> None:
    texts = [f"Number {number}." for number in range(8)]

    await asyncio.gather(*(_send(subject, text) for text in texts))

    arrived = [received.text for received in subject.received()]
    assert len(arrived) == len(texts)
    assert all(any(text in one for one in arrived) for text in texts)


async def a_message_without_a_title_arrives(subject: Subject) -> None:
    await subject.channel.send(message(subject, title=""))

    assert "All green." in subject.received()[0].text


async def hostile_text_arrives_as_text_or_is_refused(subject: Subject) -> None:
    refused = list[ChannelFailed]()
    for text in HOSTILE:
        try:
            await subject.channel.send(message(subject, text, title=text))
        except ChannelFailed as error:
            refused.append(error)

    received = subject.received()
    assert len(received) == len(HOSTILE) - len(refused)
    assert len(received) > len(refused)
    assert all(error.permanent for error in refused)
    for one in received:
        assert not hidden_characters(one.title + one.text)
    await _send(subject, "Still here.")
    assert "Still here." in subject.received()[-1].text


async def a_message_for_the_target_of_another_user_goes_nowhere(subject: Subject) -> None:
    stranger = message(subject, user_id=type(subject.user)("u_stranger"))

    error = await failure(subject, stranger)

    assert error.permanent
    assert subject.received() == []


async def a_channel_that_is_closed_leaves_no_task(subject: Subject) -> None:
    before = asyncio.all_tasks()
    await _send(subject, "One.")

    async with asyncio.timeout(BOUND):
        await subject.channel.close()
        await subject.channel.close()

    assert _started_since(before) == []


async def a_message_that_is_cancelled_leaves_no_task(subject: Subject) -> None:
    before = asyncio.all_tasks()
    subject.trouble(Trouble.SILENT)
    sending = asyncio.create_task(subject.channel.send(message(subject)))
    async with asyncio.timeout(BOUND):
        await subject.reached()
        sending.cancel()
        await asyncio.wait([sending])
        await subject.channel.close()

    assert sending.cancelled()
    assert _started_since(before) == []


def _started_since(before: set[asyncio.Task[Any]]) -> list[asyncio.Task[Any]]:
    """Return the tasks that the channel left; those of its double are in modules of `support`."""
    return [
        task
        for task in asyncio.all_tasks() - before
        if "/support/" not in getattr(getattr(task.get_coro(), "cr_code", None), "co_filename", "")
    ]


async def _send(subject: Subject, text: str) -> None:
    async with asyncio.timeout(BOUND):
        await subject.channel.send(message(subject, text))
