"""Push messages: browsers take them by their own wish, and for as long as they are signed in."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs
from support.doubles.clock import SetClock
from support.doubles.engine import End
from support.people import people
from support.people.page import Page
from support.requirements import requirement
from support.servers.push_service import Answer, Browser, PushServer, decode, push_service
from support.stage.make import NOON
from support.stage.stage import Stage

from backburner.actions.channels import push
from backburner.actions.deps import PushParts
from backburner.api.app import build_api
from backburner.channels.push.channel import PushChannel
from backburner.core.accounts import Role
from backburner.core.channels.push import MAX_SUBSCRIPTIONS, PUSH
from backburner.core.conversation import Notify
from backburner.core.ids import UserId
from backburner.gateway.push_service import CheckedPushService
from backburner.vault import web_push

PATH = "/api/push/subscriptions"
LOOPBACK = [ip_network("127.0.0.1/32")]
ASKS = End(
    {
        "needs_input": True,
        "message": "I found two.",
        "question": {"type": "choice", "prompt": "Which one?", "options": ["left", "right"]},
    }
)
HEADERS = {"content-type": "application/json"}


@pytest.fixture
async def service() -> AsyncIterator[PushServer]:
    async with push_service(now=NOON) as service:
        yield service


@pytest.fixture
def stage(set_up: Callable[..., Stage]) -> Stage:
    parts = PushParts(
        service=CheckedPushService(allow=LOOPBACK), crypto=web_push, contact="mailto:a@b.example"
    )
    stage = set_up(push=parts)
    stage.deps.channels = {**stage.deps.channels, PUSH: PushChannel(stage.deps)}
    return stage


@pytest.fixture
async def ada(stage: Stage) -> UserId:
    user = await people.add(stage)
    stage._known.add(user)
    return user


async def open_page(stage: Stage, login: str = "ada", base_url: str = "http://localhost") -> Page:
    """Sign in with another browser."""
    api = build_api(stage.deps, hosts={"localhost", "bb.example"}, checks={})
    page = Page(transport=httpx2.ASGITransport(app=api), base_url=base_url, headers=HEADERS)
    assert (await people.sign_in(page, login)).status_code == 200
    return page


async def subscribe(page: httpx2.AsyncClient, browser: Browser, **more: Any) -> Any:
    answer = await page.post(PATH, json={**browser.to_json(), **more})
    assert answer.status_code == 201, answer.text
    key = (await page.get("/api/push")).json()["key"]
    browser.server_key = decode(key)
    return answer.json()


async def list_labels(page: httpx2.AsyncClient) -> list[str]:
    return [item["label"] for item in (await page.get(PATH)).json()["items"]]


async def deliver(stage: Stage) -> None:
    while await stage.deliverer.run_once():
        pass


@requirement("Z-push")
async def test_a_phone_is_told_of_a_question_with_the_page_closed(
    stage: Stage, service: PushServer, ada: UserId
) -> None:
    stage.engine.then(ASKS)
    phone, laptop = service.browser("phone"), service.browser("laptop")
    for browser in (phone, laptop):
        page = await open_page(stage)
        await subscribe(page, browser)
        await page.aclose()

    task = await stage.task(user=ada, title="tidy")
    await stage.work()
    await deliver(stage)

    assert service.faults == []
    for browser in (phone, laptop):
        (message,) = browser.messages
        tag = message.payload.pop("tag")
        assert message.payload == {
            "title": "tidy",
            "body": "I found two.\n\nWhich one?\n\nOptions: left / right",
            "url": f"/q/{stage.question(task).id}",
            "kind": "question",
        }
        assert message.headers["urgency"] == "high"
        assert message.headers["topic"] == tag
    assert stage.said(task) == ["I found two."]


async def test_a_browser_is_told_once_though_its_service_fails_at_first(
    stage: Stage, service: PushServer, ada: UserId, clock: SetClock
) -> None:
    stage.engine.then(End({"complete": True, "message": "Found."}))
    page, browser = await open_page(stage), service.browser()
    await subscribe(page, browser)
    task = await stage.task(user=ada, notify=Notify.ALWAYS)
    await stage.work()
    service.answers += [Answer(429, "", {"retry-after": "90"}), Answer(503)]

    await deliver(stage)
    clock.advance(timedelta(seconds=89))
    await deliver(stage)
    assert len(service.asked) == 1
    clock.advance(timedelta(seconds=1))
    await deliver(stage)
    clock.advance(timedelta(minutes=1))
    await deliver(stage)
    clock.advance(timedelta(days=3))
    await deliver(stage)

    assert len(service.asked) == 3
    (message,) = browser.messages
    assert (message.payload["body"], message.payload["url"]) == ("Found.", f"/c/{task.id}")
    (listed,) = (await page.get("/api/notices")).json()["items"]
    assert [(one["channel"], one["state"]) for one in listed["deliveries"]] == [("push", "sent")]


@pytest.mark.parametrize("status", [403, 410, 413])
async def test_a_browser_that_cannot_be_told_is_no_matter_of_the_conversation(
    stage: Stage, service: PushServer, ada: UserId, status: int
) -> None:
    stage.engine.then(End({"complete": True, "message": "Found."}))
    page = await open_page(stage)
    await subscribe(page, service.browser())
    task = await stage.task(user=ada, notify=Notify.ALWAYS)
    await stage.work()
    before = stage.said(task)
    service.answers.append(Answer(status))

    with capture_logs():
        await deliver(stage)

    assert stage.said(task) == before
    (item,) = [*(await page.get(PATH)).json()["items"], None][:1]
    assert (item is None) == (status == 410)
    assert item is None or str(status) in item["error"]


async def test_the_key_is_the_same_for_all_and_says_where_pages_can_have_messages(
    stage: Stage, ada: UserId
) -> None:
    page, other = await open_page(stage), await open_page(stage, base_url="http://bb.example")
    secure = await open_page(stage, base_url="https://bb.example")

    states = [(await one.get("/api/push")).json() for one in (page, other, secure)]

    assert len({state["key"] for state in states}) == 1
    assert len(decode(states[0]["key"])) == 65
    assert [state["problem"] for state in states] == [
        None,
        "Browsers take push messages only on pages with https, or on localhost; not on bb.example.",
        None,
    ]
    del ada


async def test_two_processes_that_need_the_key_at_once_have_the_same(stage: Stage) -> None:
    """Each with connections of its own, and neither has found one."""
    keys = await asyncio.gather(*(push.read_state(stage.deps, "") for _ in range(6)))

    assert len({state.key for state in keys}) == 1


@pytest.mark.usefixtures("ada")
async def test_browsers_are_listed_by_their_names_without_their_secrets(
    stage: Stage, service: PushServer
) -> None:
    page, other = await open_page(stage), await open_page(stage)
    chrome = "Mozilla/5.0 (Linux; Android 10; K) Chrome/140.0.0.0 Mobile Safari/537.36"
    page.headers["user-agent"] = chrome
    browser = service.browser()
    made = await subscribe(page, browser)
    await subscribe(other, service.browser("two"), label="My phone")

    answer = await page.get(PATH)

    items = answer.json()["items"]
    assert [(item["label"], item["is_this"]) for item in items] == [
        ("Chrome on Android", True),
        ("My phone", False),
    ]
    assert items[0] == made
    assert made["service"] == "127.0.0.1"
    exported = (await page.get("/api/export")).text
    assert "My phone" in exported
    for text in (answer.text, exported):
        for secret in (browser.endpoint, "/send/", browser.to_json()["keys"]["auth"]):
            assert secret not in text


@pytest.mark.usefixtures("ada")
async def test_the_same_browser_again_is_the_same_one(stage: Stage, service: PushServer) -> None:
    first, second = await open_page(stage), await open_page(stage)
    browser = service.browser()
    made = await subscribe(first, browser)
    again = await subscribe(second, browser, label="Renamed")

    assert again["id"] == made["id"]
    assert await list_labels(first) == ["Renamed"]
    # It is the second session's now.
    await first.post("/api/sign-out")
    assert await list_labels(second) == ["Renamed"]


ENDS: dict[str, Any] = {
    "signed out": lambda page, _: page.post("/api/sign-out"),
    "signed out everywhere": lambda page, _: page.post("/api/sign-out-everywhere"),
    "revoked": lambda _, person: person.revoke(),
    "new password": lambda page, _: page.put(
        "/api/password", json={"current": people.PASSWORD, "password": "other words than before"}
    ),
    "disabled": lambda _, person: person.change({"disabled": True}),
    "another role": lambda _, person: person.change({"role": "operator"}),
    "erased": lambda page, _: page.post("/api/erase", json={"confirm": "erase everything of mine"}),
}


class Other:
    """Somebody who acts on a user and their sessions from elsewhere."""

    def __init__(self, stage: Stage, user: UserId, page: httpx2.AsyncClient) -> None:
        self.stage, self.user, self.page = stage, user, page

    async def revoke(self) -> httpx2.Response:
        other = await open_page(self.stage)
        sessions = (await other.get("/api/sessions")).json()["items"]
        (which,) = [one["id"] for one in sessions if not one["is_this"]]
        return await other.delete(f"/api/sessions/{which}")

    async def change(self, body: dict[str, Any]) -> httpx2.Response:
        operator = await people.add(self.stage, "olga", role=Role.OPERATOR)
        headers = await people.token(self.stage, operator)
        api = build_api(self.stage.deps, hosts={"localhost"}, checks={})
        transport = httpx2.ASGITransport(app=api)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.patch(f"/api/users/{self.user}", json=body, headers=headers)


@pytest.mark.parametrize("how", ENDS)
async def test_the_end_of_its_session_ends_what_a_browser_is_sent(
    stage: Stage, service: PushServer, ada: UserId, how: str
) -> None:
    page, browser = await open_page(stage), service.browser()
    await subscribe(page, browser)
    stage.engine.then(ASKS)
    await stage.task(user=ada)
    await stage.work()

    answer = await ENDS[how](page, Other(stage, ada, page))
    assert answer.is_success, answer.text
    await deliver(stage)

    assert service.asked == []
    rows = stage.database.run(
        lambda tx: tx.connection.exec_driver_sql("SELECT * FROM push_subscriptions").all()
    )
    assert rows == []


async def test_only_a_browser_of_its_own_session_can_be_added(
    stage: Stage, service: PushServer, ada: UserId
) -> None:
    headers = await people.token(stage, ada)
    page = await open_page(stage)

    answer = await page.post(PATH, json=service.browser().to_json(), headers=headers)

    assert answer.status_code == 403
    assert answer.json()["detail"] == "Only a browser can take push messages."
    assert await list_labels(page) == []


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"endpoint": "http://push.example/send"}, 400),
        ({"endpoint": "ftp://push.example/send"}, 400),
        ({"endpoint": "https://push.example:22/send"}, 400),
        ({"endpoint": "https://user:secret@push.example/send"}, 400),
        ({"endpoint": "https://10.0.0.1/send"}, 403),
        ({"endpoint": "https://[::1]/send"}, 403),
        ({"endpoint": "https://169.254.169.254/send"}, 403),
        ({"endpoint": "https://localhost.invalid/send"}, 400),
        ({"endpoint": "x" * 2001}, 422),
        ({"keys": {"p256dh": "AAAA", "auth": "A" * 22}}, 400),
        ({"keys": {"p256dh": "A", "auth": "A"}}, 400),
        ({"keys": {"p256dh": "?", "auth": "A" * 22}}, 422),
        ({"label": "x" * 101}, 422),
        ({"label": " "}, 400),
        ({"more": 1}, 422),
    ],
)
@pytest.mark.usefixtures("ada")
async def test_what_is_no_subscription_is_refused_and_stores_nothing(
    stage: Stage, service: PushServer, change: dict[str, Any], status: int
) -> None:
    page = await open_page(stage)

    answer = await page.post(PATH, json={**service.browser().to_json(), **change})

    assert answer.status_code == status, answer.text
    assert "secret" not in answer.text
    assert await list_labels(page) == []
    assert service.asked == []


@pytest.mark.usefixtures("ada")
async def test_a_user_has_so_many_browsers_at_most(stage: Stage, service: PushServer) -> None:
    page = await open_page(stage)
    for number in range(MAX_SUBSCRIPTIONS):
        await subscribe(page, service.browser(f"{number}"))

    answer = await page.post(PATH, json=service.browser("one more").to_json())
    again = await page.post(PATH, json=service.browsers["/send/3"].to_json())

    assert (answer.status_code, again.status_code) == (429, 201)
    assert answer.json()["hint"] == "Remove one first."


@pytest.mark.usefixtures("ada")
async def test_a_test_tells_what_the_push_service_says(stage: Stage, service: PushServer) -> None:
    page, browser = await open_page(stage), service.browser()
    made = await subscribe(page, browser)
    path = f"{PATH}/{made['id']}/test"

    sent = (await page.post(path)).json()
    service.answers.append(Answer(403, '{"reason": "BadJwtToken"}'))
    with capture_logs():
        refused = (await page.post(path)).json()
    browser.is_gone = True
    gone = (await page.post(path)).json()
    after = await page.post(path)

    assert sent == {"sent": True, "problem": None, "hint": "", "removed": False}
    assert browser.messages[0].payload == {
        "title": "Backburner",
        "body": "Notifications work in this browser.",
        "url": "/",
        "tag": "test",
        "kind": "test",
    }
    assert refused["problem"] == "127.0.0.1 refuses messages of this server (403 BadJwtToken)."
    assert (refused["sent"], refused["removed"]) == (False, False)
    assert "push_contact" in refused["hint"]
    assert (gone["sent"], gone["removed"]) == (False, True)
    assert after.status_code == 404


@pytest.mark.usefixtures("ada")
async def test_a_browser_is_removed(stage: Stage, service: PushServer) -> None:
    page = await open_page(stage)
    made = await subscribe(page, service.browser())

    answers = [await page.delete(f"{PATH}/{made['id']}") for _ in range(2)]

    assert [answer.status_code for answer in answers] == [204, 404]
    assert await list_labels(page) == []


@pytest.mark.usefixtures("ada")
async def test_the_browsers_of_others_are_nobodys(stage: Stage, service: PushServer) -> None:
    await people.add(stage, "bob")
    theirs, mine = await open_page(stage, "bob"), await open_page(stage)
    made = await subscribe(theirs, browser := service.browser())

    for method, path in (("DELETE", ""), ("POST", "/test")):
        answer = await mine.request(method, f"{PATH}/{made['id']}{path}")
        nothing = await mine.request(method, f"{PATH}/p_0123456789abcdefghjkmnpqrs{path}")
        assert (answer.status_code, answer.json()) == (404, nothing.json())
    assert await list_labels(mine) == []
    assert (await list_labels(theirs), browser.messages) == (["A browser"], [])
    # The same endpoint as another user's is their own subscription.
    own = await subscribe(mine, browser)
    assert own["id"] != made["id"]
    assert await list_labels(theirs) == ["A browser"]


async def test_work_cannot_report_to_a_browser(stage: Stage, ada: UserId) -> None:
    headers = await people.token(stage, ada)
    page = await open_page(stage)
    body = {
        "name": "tidy",
        "prompt": "Tidy up.",
        "schedule": {"type": "immediate"},
        "reports_to": [{"channel": "push", "target": "p_1"}],
    }

    answer = await page.post("/api/tasks", json=body, headers=headers)

    assert answer.status_code == 400, answer.text
    assert "always get them" in answer.json()["detail"]


@pytest.mark.usefixtures("ada")
async def test_a_process_without_the_channel_says_so(stage: Stage, service: PushServer) -> None:
    page = await open_page(stage)
    made = await subscribe(page, service.browser())
    stage.deps.channels = {}
    bare = replace(stage.deps, push=PushParts())

    answer = await page.post(f"{PATH}/{made['id']}/test")

    assert answer.status_code == 409
    with pytest.raises(Exception, match="sends no push messages"):
        await push.read_state(bare, "")
