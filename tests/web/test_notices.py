"""The bell, the list of notices and the browsers that show them, as fragments."""

import json
from collections.abc import AsyncIterator, Callable
from html.parser import HTMLParser
from typing import Any

import httpx2
import pytest
from support.doubles.engine import End
from support.stage.api_stage import Asker
from support.stage.make import NOON, USER
from support.stage.stage import PLACE, Stage
from support.statements import watched

from backburner.actions.accounts import credentials, sign_in
from backburner.actions.deps import PushParts
from backburner.api.app import build_api
from backburner.core.channels.push import PushSubscription
from backburner.core.conversation import Destination, Notify
from backburner.core.errors import ChannelFailed
from backburner.core.ids import PushId
from backburner.gateway.push_service import CheckedPushService
from backburner.vault import web_push
from backburner.web.page_routes import add_pages

HOSTILE = '<script>alert(1)</script> "><img src=x onerror=alert(2)> \u202egnp.exe ' + "W" * 2_000
QUESTION = {"type": "choice", "prompt": "Go on?", "options": ["yes", "no"]}
ASKS = End({"needs_input": True, "message": "I found two.", "question": QUESTION})


@pytest.fixture
def stage(set_up: Callable[..., Stage]) -> Stage:
    return set_up(push=PushParts(service=CheckedPushService(allow=[]), crypto=web_push, contact=""))


@pytest.fixture
async def client(stage: Stage) -> AsyncIterator[httpx2.AsyncClient]:
    """Ask a server that also has a name which is not that of its machine."""
    api = build_api(stage.deps, hosts={"localhost", "bb.example"}, checks={})
    add_pages(api)
    transport = httpx2.ASGITransport(app=api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


class Tags(HTMLParser):
    """The tags of a fragment with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, name: str) -> list[str]:
        return [value for _, found in self.found if (value := found.get(name)) is not None]


async def show(ask: Asker, path: str) -> Tags:
    answer = await ask("GET", path)
    assert answer.status_code == 200, answer.text
    return Tags(answer.text)


async def tell(stage: Stage, text: str = "Found.", **more: Any) -> str:
    stage.engine.then(End({"complete": True, "message": text}))
    task = await stage.task(notify=Notify.ALWAYS, **more)
    await stage.work()
    return str(task.id)


async def test_the_bell_counts_what_is_new_and_lists_the_newest(ask: Asker, stage: Stage) -> None:
    empty = await show(ask, "/page/bell")
    assert empty.values("data-unseen") == ["0"]
    assert "No notices yet." in empty.text

    await tell(stage, "**Main** is `green`.", title="Nightly")
    stage.engine.then(ASKS)
    asks = await stage.task(title="tidy")
    await stage.work()
    question = stage.question(asks).id
    bell = await show(ask, "/page/bell")

    assert bell.values("data-unseen") == ["2"]
    assert bell.values("data-user") == [USER]
    assert "Notices, 2 new" in bell.values("aria-label")
    first, second = (json.loads(text) for text in bell.values("data-notice"))
    assert (first["title"], first["body"], first["url"]) == ("tidy", "Go on?", f"/q/{question}")
    assert (second["title"], second["body"], second["kind"]) == (
        "Nightly",
        "Main is green.",
        "result",
    )
    # All of it is marked up to the newest.
    (body,) = (json.loads(text) for text in bell.values("data-body"))
    await ask.do("POST", "/api/notices/seen", body)
    seen = await show(ask, "/page/bell")
    assert (seen.values("data-unseen"), seen.values("data-notice")) == (["0"], [])
    assert seen.values("data-call") == []
    # The sidebar has it from the start.
    assert (await show(ask, "/page/sidebar")).values("data-unseen") == ["0"]


async def test_a_question_that_is_not_open_leads_to_its_conversation(
    ask: Asker, stage: Stage
) -> None:
    stage.engine.then(ASKS)
    asks = await stage.task()
    await stage.work()
    question = stage.question(asks).id
    assert f"/q/{question}" in (await show(ask, "/page/notices")).values("href")

    await ask.do("POST", f"/api/questions/{question}/answer", {"answer": "yes"})

    found = await show(ask, "/page/notices")
    assert f"/c/{asks.id}" in found.values("href")
    assert f"/q/{question}" not in found.values("href")
    assert "Asked:" in found.text


async def test_all_notices_are_listed_in_pages(ask: Asker, stage: Stage) -> None:
    for number in range(3):
        await tell(stage, f"Result {number}")
    with watched(stage.database) as statements:
        first = await show(ask, "/page/notices?limit=2")
    (more,) = first.values("data-more")
    second = await show(ask, f"{more}&limit=2")

    assert [number for number in range(3) if f"Result {number}" in first.text] == [1, 2]
    assert [number for number in range(3) if f"Result {number}" in second.text] == [0]
    assert (second.values("data-title"), second.values("data-more")) == ([], [])
    # However many there are.
    assert sum("FROM notices" in statement for statement, _ in statements) == 2
    assert (await ask("GET", "/page/notices?cursor=x")).status_code == 400


async def test_a_notice_says_what_became_of_its_deliveries(ask: Asker, stage: Stage) -> None:
    places = tuple(Destination(name, "me") for name in (PLACE, "nowhere"))
    await tell(stage, reports_to=places)
    assert (await show(ask, "/page/notices")).text.count("Waits to be sent to") == 2

    stage.channel.failures.append(ChannelFailed("It is busy."))
    while await stage.deliverer.run_once():
        pass
    late = (await show(ask, "/page/notices")).text
    assert f"Waits to be sent to {PLACE}, me: It is busy. Next try today" in late
    assert "Could not be delivered to nowhere, me: The channel 'nowhere' is not set up" in late


async def test_what_others_have_written_stays_text(ask: Asker, stage: Stage) -> None:
    await tell(stage, HOSTILE, title=HOSTILE[:150])
    stage.channel.failures.append(ChannelFailed(HOSTILE))
    for path in ("/page/bell", "/page/notices", "/page/sidebar"):
        found = await show(ask, path)
        assert not {"script", "img"} & {tag for tag, _ in found.found}, path
        assert not [name for _, marks in found.found for name in marks if name.startswith("on")]
        assert "<script>alert(1)</script>" in found.text
        # What the system shows of it has no hidden characters, and is short.
        for text in found.values("data-notice"):
            notice = json.loads(text)
            assert "\u202e" not in notice["title"] + notice["body"]
            assert len(notice["body"]) <= 400


async def test_strangers_see_nothing(mate: Asker, stage: Stage) -> None:
    await tell(stage, "Secret")
    await subscribe(stage, "p_1", label="My phone")
    for path in ("/page/bell", "/page/notices", "/page/settings/notifications", "/page/sidebar"):
        found = await show(mate, path)
        assert "Secret" not in found.text, path
        assert "My phone" not in found.text, path
        answer = await mate.client.get(path)
        assert answer.status_code == 401


@pytest.mark.parametrize(
    ("host", "problem"), [("localhost", ""), ("bb.example", "only on pages with https")]
)
async def test_settings_list_browsers_and_say_where_nothing_can_be_pushed(
    ask: Asker, stage: Stage, host: str, problem: str
) -> None:
    await subscribe(stage, "p_1", label=HOSTILE[:90])
    await subscribe(stage, "p_2", label="Firefox on Linux")
    fail = "The service says <u>no</u>."
    stage.database.run(lambda tx: tx.push_subscriptions.mark_failed(USER, PushId("p_2"), fail))
    path = f"http://{host}/page/settings/notifications"
    answer = await ask.client.get(path, headers={"authorization": f"Bearer {ask.token}"})
    found = Tags(answer.text)

    assert ("only on pages with https" in found.text) == bool(problem)
    assert "<script>alert(1)</script>" in found.text
    assert "The service says <u>no</u>. (today" in found.text
    assert not {"script", "img", "u"} & {tag for tag, _ in found.found}
    calls = found.values("data-call")
    assert "POST /api/push/subscriptions/p_1/test" in calls
    assert "DELETE /api/push/subscriptions/p_2" in calls


async def subscribe(stage: Stage, name: str, *, label: str) -> None:
    """Store a browser with a session of its own."""
    stage.user(USER)
    session = stage.database.run(lambda tx: sign_in.start_session(tx, USER))
    caller = await credentials.identify(stage.deps, session.secret)
    assert caller is not None
    made = PushSubscription(
        id=PushId(name),
        user_id=USER,
        session=caller.credential,
        endpoint=f"https://push.example/{name}",
        receiver_key=b"k" * 65,
        auth=b"a" * 16,
        server_key=b"s" * 65,
        label=label,
        created_at=NOON,
    )
    stage.database.run(lambda tx: tx.push_subscriptions.put(made))
