"""The feed: what its subscribers get, in which order."""

import asyncio
from dataclasses import replace

from support.doubles.engine import Say, Wait
from support.people.tokens import issue_credential
from support.servers.live import BOUND, wait_for_draft
from support.stage.make import USER
from support.stage.stage import Stage
from support.stage.stages import clock, database, set_up, stage

from backburner.bus.local import LocalBus
from backburner.core.accounts import Scope
from backburner.live.drafts import Broadcast
from backburner.live.feed import Feed
from backburner.live.subscriber import MAX_SUBSCRIBER_QUEUE, FeedItem, Subscriber
from backburner.ports import Change, EventKind, Hint, HintKind

__all__ = ["clock", "database", "set_up", "stage"]


async def issue_id(stage: Stage) -> str:
    stage.user()
    return (await issue_credential(stage.deps, USER, [Scope.READ], name="Test")).id


def latest(stage: Stage) -> int:
    return stage.database.run(lambda tx: tx.events.latest(USER))


async def test_a_reply_of_another_process_is_seen_though_its_run_has_just_begun(
    stage: Stage,
) -> None:
    end = asyncio.Event()
    stage.engine.then(Say("One "), Wait(end))
    here = await stage.chat()
    bus = LocalBus()
    elsewhere = Feed(replace(stage.deps, drafts=Broadcast(), bus=bus))
    async with elsewhere.follow(USER, await issue_id(stage), after=None) as subscriber:
        subscriber.take()
        await stage.say(here, "Hello?")
        await stage.take_up()
        await wait_for_draft(stage, here)
        bus.hint(Hint(HintKind.CHANGED, USER, here.id))
        news = await _next_with_changes(subscriber)
    end.set()
    await stage.idle()

    assert {change.kind for change in news.changes} >= {"message", "run"}
    assert [draft.text for draft in news.drafts] == ["One "]


async def test_no_piece_of_a_reply_is_lost_to_a_change_that_comes_after_it(stage: Stage) -> None:
    more, end = asyncio.Event(), asyncio.Event()
    stage.engine.then(Say("One "), Wait(more), Say("two."), Wait(end))
    here = await stage.chat()
    feed = Feed(stage.deps)
    token = await issue_id(stage)
    async with (
        feed.follow(USER, token, after=None) as slow,
        feed.follow(USER, token, after=None) as quick,
    ):
        await stage.say(here, "Hello?")
        await stage.take_up()
        await wait_for_draft(stage, here)
        stage.database.run(lambda tx: tx.changed(USER, here.id, EventKind.MESSAGE))
        while (await _next_with_changes(quick)).changes[-1].number < latest(stage):
            pass
        more.set()
        while not (await _next(quick)).drafts:
            pass
        news = slow.take()
    end.set()
    await stage.idle()

    assert [(draft.at, draft.text) for draft in news.drafts] == [(0, "One two.")]


async def _next_with_changes(subscriber: Subscriber) -> FeedItem:
    while not (news := await _next(subscriber)).changes:
        pass
    return news


async def _next(subscriber: Subscriber) -> FeedItem:
    assert await subscriber.wait(BOUND)
    return subscriber.take()


def test_a_client_that_does_not_keep_up_begins_with_everything() -> None:
    slow = Subscriber(USER, "credential")
    slow.begin(7, [], is_new=True)
    slow.take()
    slow.offer(Change(8 + number, "user", None) for number in range(MAX_SUBSCRIBER_QUEUE + 1))
    slow.offer([Change(1000, "user", None)])

    news = slow.take()
    assert (news.resets, news.begins_at) == (True, 8 + MAX_SUBSCRIBER_QUEUE)
    assert [one.number for one in news.changes] == [1000]
