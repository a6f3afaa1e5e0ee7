"""Rendered messages are kept within a bound, and found by their text."""

import asyncio

import pytest
from web.markdown.corpus import LONG, NORMAL

from backburner.web.markdown import RenderedMessages, render


def test_a_message_is_rendered_once() -> None:
    messages = RenderedMessages()

    first = messages.render("m1", LONG)

    assert first == render(LONG)
    assert messages.render("m1", LONG) is first


def test_another_text_of_a_message_is_rendered_again() -> None:
    messages = RenderedMessages()
    messages.render("m1", "before")

    assert messages.render("m1", "after") == "<p>after</p>\n"
    assert messages.render("m2", "before") is not messages.render("m1", "before")


def test_the_least_recently_used_is_dropped() -> None:
    messages = RenderedMessages(max_bytes=2000)
    first, second = (messages.render(name, name * 200) for name in "ab")
    assert messages.render("a", "a" * 200) is first

    messages.render("c", "c" * 600)

    assert messages.render("a", "a" * 200) is first
    assert messages.render("b", "b" * 200) is not second
    assert messages.size <= 2000


def test_a_message_larger_than_the_bound_is_not_kept() -> None:
    messages = RenderedMessages(max_bytes=1000)
    kept = messages.render("a", "a")

    assert messages.render("b", "b" * 2000) == f"<p>{'b' * 2000}</p>\n"
    assert len(messages) == 1
    assert messages.render("a", "a") is kept


def test_wide_characters_count_with_their_bytes() -> None:
    narrow, wide = RenderedMessages(), RenderedMessages()
    narrow.render("a", "a" * 1000)
    wide.render("a", "\U0001f600" * 1000)

    assert wide.size > 3 * narrow.size


async def test_threads_may_share_it() -> None:
    messages = RenderedMessages(max_bytes=4000)
    work = [(str(number % 7), text) for number in range(20) for text in NORMAL.values()]

    found = await asyncio.gather(
        *(asyncio.to_thread(messages.render, name, text) for name, text in work)
    )

    assert found == [render(text) for _, text in work]
    assert 0 < messages.size <= 4000


async def test_the_loop_of_requests_finds_messages_and_renders_none() -> None:
    messages = RenderedMessages()

    with pytest.raises(RuntimeError, match="holds up all requests"):
        messages.render("m1", LONG)
    assert messages.find("m1", LONG) is None
    first = await asyncio.to_thread(messages.render, "m1", LONG)

    assert messages.render("m1", LONG) is first
    assert messages.find("m1", LONG) is first
