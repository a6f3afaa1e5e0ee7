"""Replies in progress: what is long is split and rendered while other requests go on."""

import asyncio

import pytest

from backburner.core.ids import ConversationId, RunId
from backburner.ports import ReplyDraft
from backburner.web.drafts import Drafts, Watcher

CHAT, RUN = ConversationId("c_1"), RunId("r_1")


@pytest.mark.parametrize("block", ["- a\n", "Some **bold** words.\n\n"])
async def test_a_long_reply_that_is_seen_first_holds_up_nobody(block: str) -> None:
    text, drafts, watcher = block * (100_000 // len(block)), Drafts(), Watcher()
    showing = asyncio.create_task(drafts.show(ReplyDraft(CHAT, RUN, text, 0), watcher))
    turns = 0
    while not showing.done():
        await asyncio.sleep(0.001)
        turns += 1

    shown = await showing

    assert shown is not None
    # On the loop, it would be one.
    assert turns > 5


async def test_watchers_of_a_long_reply_get_the_same_whoever_is_first() -> None:
    text, drafts, watchers = "Some *words*.\n\n" * 2_000, Drafts(), [Watcher(), Watcher()]
    pieces = [ReplyDraft(CHAT, RUN, text[:20_000], 0), ReplyDraft(CHAT, RUN, text[20_000:], 20_000)]

    async def watch(watcher: Watcher) -> list[str]:
        shown = [await drafts.show(piece, watcher) for piece in pieces]
        return [block for one in shown if one is not None for block in one["blocks"]]

    first, second = await asyncio.gather(*map(watch, watchers))

    assert first == second == ["<p>Some <em>words</em>.</p>\n"] * 2_000
