"""Notices in a real browser: the bell, notifications, messages, and a server that is away."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from support.browser.browsing import Browser, BrowserContext, Page, expect, person
from support.browser.visitors import Server, Visitor, expect_signed_in, serving, sign_in
from support.requirements import requirement
from support.servers.push_service import Browser as Receiver
from support.servers.push_service import PushServer, decode, push_service

pytestmark = pytest.mark.timeout(400)

ASK = "every second ask me whether to go on"
#: Headless Chromium shows no notifications, and has no push service: both belong to its system.
SYSTEM = """(() => {
  if (location.protocol !== "http:") return;
  const decode = (key) => atob(key.replace(/-/g, "+").replace(/_/g, "/"));
  const find = (key) => ({
    options: {
      applicationServerKey: Uint8Array.from(decode(key), (one) => one.charCodeAt()).buffer,
    },
    toJSON: () => (SUBSCRIPTION),
    unsubscribe: async () => delete localStorage.pushed,
  });
  Object.defineProperty(Notification, "permission", {
    get: () => localStorage.allowed ?? "default",
  });
  Notification.requestPermission = async () => (localStorage.allowed = "granted");
  PushManager.prototype.getSubscription = async () =>
    localStorage.pushed ? find(localStorage.pushed) : null;
  PushManager.prototype.subscribe = async ({ applicationServerKey, userVisibleOnly }) => {
    if (!userVisibleOnly) throw new Error("Silent messages are not allowed.");
    return find(localStorage.pushed = applicationServerKey);
  };
  Object.defineProperty(document, "hidden", { get: () => localStorage.front !== "yes" });
})()"""
#: The same in the service worker, which notes what the system would show.
WORKER_SYSTEM = """() => {
  self.shown = [];
  ServiceWorkerRegistration.prototype.showNotification = async function (title, options) {
    self.shown.push({ title, ...options });
  };
  PushManager.prototype.getSubscription = async () => ({
    unsubscribe: async () => { self.ended = true; },
  });
  Object.defineProperty(WindowClient.prototype, "visibilityState", {
    get: () => self.front ?? "hidden",
  });
}"""
SHOWN = """(number) => new Promise((go) => {
  const look = () => (self.shown.length < number ? setTimeout(look, 20) : go(self.shown));
  look();
})"""
ENDED = """() => new Promise((go) => {
  const look = () => (self.ended ? go() : setTimeout(look, 20));
  look();
})"""
CLICK = """async (url) => {
  const event = new ExtendableEvent("notificationclick");
  let done;
  event.notification = { data: url, close: () => { self.closed = true; } };
  event.waitUntil = (promise) => { done = promise; };
  dispatchEvent(event);
  // Only the system may say that a person has clicked; without, no window can be focused.
  await done.catch((error) => { if (error.name !== "InvalidAccessError") throw error; });
}"""


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Give a server where nothing is told but by these tests."""
    with serving(tmp_path_factory.mktemp("quiet")) as server:
        yield server


@pytest.fixture
async def service() -> AsyncIterator[PushServer]:
    async with push_service() as service:
        yield service


@pytest.fixture
def receiver(service: PushServer) -> Receiver:
    return service.browser()


@pytest.fixture
async def user(browser: Browser, receiver: Receiver) -> AsyncIterator[BrowserContext]:
    # One of the tests signs out under an open page.
    async with person(browser, allowed=("401 (Unauthorized)",)) as user:
        await user.add_init_script(SYSTEM.replace("SUBSCRIPTION", json.dumps(receiver.to_json())))
        yield user


@pytest.fixture
async def visitor(quiet: Server, user: BrowserContext) -> Visitor:
    visitor = Visitor(await sign_in(user, quiet.make_link()), quiet)
    if newest := (await visitor.call("GET", "/api/notices?limit=1"))["items"]:
        await visitor.call("POST", "/api/notices/seen", {"up_to": newest[0]["id"]})
    return visitor


async def worker_of(user: BrowserContext, page: Page) -> Any:
    await page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    (worker,) = user.service_workers
    await worker.evaluate(WORKER_SYSTEM)
    return worker


async def test_a_notice_comes_live_and_is_marked_everywhere(
    visitor: Visitor, quiet: Server, browser: Browser
) -> None:
    page = await visitor.open("/new")
    bell = page.get_by_role("button", name="Notices")
    await expect(bell).to_have_accessible_name("Notices")
    needs = int(await page.locator("#nav").get_attribute("data-needs") or 0)
    first = await visitor.say(ASK)
    await expect(bell).to_have_accessible_name("Notices, one new")
    await expect(page).to_have_title(f"({needs + 1}) New conversation · Backburner")
    # The tray stays where it is while it changes.
    await bell.click()
    tray = page.get_by_role("region", name="Notices")
    place = await tray.bounding_box()
    await expect(tray.locator(".unseen")).to_have_count(1)
    await page.evaluate("document.querySelector('#tray .notice').sameElement = true")
    await visitor.say(ASK)
    await expect(tray.locator(".unseen")).to_have_count(2)
    moved = await tray.bounding_box()
    assert place is not None
    assert moved is not None
    assert (place["x"], place["y"]) == (moved["x"], moved["y"])
    await expect(page.locator("link[rel=icon]")).to_have_attribute("href", re.compile("^blob:"))

    async with person(browser, viewport={"width": 390, "height": 844}) as phone:
        other = Visitor(await sign_in(phone, quiet.make_link()), quiet)
        await other.page.get_by_role("link", name="Notices, 2 new").click()
        await expect(other.page.get_by_role("heading", name="Notices")).to_be_visible()
        listed = other.page.locator("#notices .notice.unseen")
        await expect(listed).to_have_count(2)

        # A question that is opened has been seen; one that is answered, too.
        await tray.locator(".notice a").last.click()
        await expect(page.get_by_role("region", name="Shall I go on?")).to_be_visible()
        await expect(listed).to_have_count(1)
        await other.page.get_by_role("button", name="Mark all as seen").click()
        await expect(other.page.locator("#notices")).to_contain_text("You have seen them all.")
        await expect(bell).to_have_accessible_name("Notices")
        assert await other.page.evaluate("document.documentElement.scrollWidth") == 390
    asked = page.get_by_role("region", name="Shall I go on?")
    await asked.get_by_role("button", name="No").click()
    await expect(asked).to_have_count(0)
    await visitor.call("DELETE", f"/api/conversations/{first}")


@requirement("Z-push")
async def test_a_browser_is_told_with_its_page_closed_and_opens_what_it_was_told(
    visitor: Visitor, quiet: Server, user: BrowserContext, service: PushServer, receiver: Receiver
) -> None:
    page = await visitor.open("/settings/notifications")
    await expect(page.get_by_text("Off. The browser asks you once")).to_be_visible()
    # Nobody was asked.
    assert await page.evaluate("localStorage.allowed") is None
    await page.locator(".notify").get_by_role("button", name="Turn on").click()
    await expect(page.get_by_text("On, also when no page is open")).to_be_visible()
    receiver.server_key = decode(await page.evaluate("localStorage.pushed"))
    row = page.locator("#section li", has_text="this one")
    await expect(row).to_contain_text(" on ")
    await row.get_by_role("button", name="Send a test").click()
    await expect(page.locator(".toast")).to_contain_text("The push service took it.")
    assert receiver.messages[0].payload["kind"] == "test"

    await page.goto("about:blank")
    service.was_asked.clear()
    told = quiet.start("say", ASK, "--data", quiet.data)
    await asyncio.to_thread(told.process.wait)
    await asyncio.wait_for(service.was_asked.wait(), 20)
    payload = receiver.messages[1].payload
    assert (payload["body"].partition("\n")[0], service.faults) == ("Shall I go on?", [])

    page = await visitor.open("/new")
    worker = await worker_of(user, page)
    await deliver(user, page, quiet.address, payload)
    (shown,) = await worker.evaluate(SHOWN, 1)
    assert (shown["title"], shown["tag"]) == (payload["title"], payload["tag"])
    assert shown["icon"].endswith("icon-192.png")
    await worker.evaluate(CLICK, shown["data"])
    assert await worker.evaluate("self.closed")
    await expect(page).to_have_url(f"{quiet.address}{payload['url']}")
    await expect(page.get_by_role("region", name="Shall I go on?")).to_be_visible()

    # The session ends, and with it the row and what the browser has for it; the next one takes the
    # messages again.
    await visitor.call("POST", "/api/sign-out")
    await expect(page.get_by_label("Password")).to_be_visible()
    await worker.evaluate(ENDED)
    async with page.expect_response(lambda one: one.url.endswith("/push/subscriptions")) as made:
        await page.goto(quiet.make_link())
        await page.get_by_role("button", name="Sign in").click()
        await expect_signed_in(page)
    assert (await made.value).status == 201
    # What is removed elsewhere stays so.
    (mine,) = (await visitor.call("GET", "/api/push/subscriptions"))["items"]
    await visitor.call("DELETE", f"/api/push/subscriptions/{mine['id']}")
    await visitor.open("/settings/notifications")
    await expect(page.get_by_text("Off. The browser asks you once")).to_be_visible()
    # What the page allows no test to do is to wait for an expression.
    for _ in range(200):
        if await page.evaluate("localStorage.pushed") is None:
            break
        await page.wait_for_timeout(50)
    assert await page.evaluate("localStorage.pushed") is None


async def test_open_pages_show_one_notification_if_none_is_in_front(
    visitor: Visitor, quiet: Server, user: BrowserContext
) -> None:
    tabs = [visitor.page, *[await user.new_page() for _ in range(2)]]
    user_id = await visitor.page.locator("#bell").get_attribute("data-user")
    wish = f"localStorage.allowed = 'granted'; localStorage['backburner-notify'] = '{user_id}'"
    await visitor.page.evaluate(wish)
    for tab in tabs:
        await tab.goto(f"{quiet.address}/new")
        await expect_signed_in(tab)
    worker = await worker_of(user, visitor.page)

    await tell(visitor, tabs, "one new")
    (shown,) = await worker.evaluate(SHOWN, 1)
    assert shown["body"] == "Shall I go on?"
    await worker.evaluate("self.front = 'visible'")
    await tell(visitor, tabs, "2 new")
    await worker.evaluate("self.front = 'hidden'")
    await tell(visitor, tabs, "3 new")
    assert len({one["tag"] for one in await worker.evaluate(SHOWN, 2)}) == 2
    assert len(await worker.evaluate("self.shown")) == 2


async def test_without_its_server_the_page_opens_with_the_draft_and_comes_back(
    cut_off: Visitor,
) -> None:
    page, server = cut_off.page, cut_off.server
    conversation_id = await cut_off.say("hello there")
    await cut_off.open(f"/c/{conversation_id}")
    await page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    await page.locator("#composer").fill("half a")
    kept = """async () => (await Promise.all((await caches.keys()).map(async (name) =>
      (await (await caches.open(name)).keys()).map((one) => new URL(one.url).pathname)))).flat()"""
    paths = await page.evaluate(kept)
    assert [path for path in paths if not path.startswith("/assets/")] == ["/"]

    server.running.process.kill()
    server.running.process.wait()
    await page.reload()
    await expect(page.get_by_role("heading", name="No connection")).to_be_visible()
    draft = page.get_by_label("Your draft")
    await expect(draft).to_have_value("half a")
    await draft.fill("half a sentence")
    assert await page.evaluate(kept) == paths

    port = server.address.rpartition(":")[2]
    again = server.start("up", "--port", port, "--data", server.data)
    await asyncio.to_thread(again.wait_until_ready)
    await expect(page.locator("#composer")).to_have_value("half a sentence")
    await expect(page.locator(".message.theirs[id]")).to_be_visible()
    await expect_signed_in(page)


async def tell(visitor: Visitor, tabs: list[Page], bell: str) -> None:
    """Cause a notice, and wait until all tabs have heard of it."""
    await visitor.say(ASK)
    for tab in tabs:
        await expect(tab.get_by_role("button", name=f"Notices, {bell}")).to_be_attached()


async def deliver(user: BrowserContext, page: Page, origin: str, payload: object) -> None:
    """Hand a message to the service worker, as the browser's push service does."""
    debugger = await user.new_cdp_session(page)
    found: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def note(event: dict[str, Any]) -> None:
        for one in event["registrations"]:
            if not found.done() and one["scopeURL"] == f"{origin}/":
                found.set_result(one["registrationId"])

    debugger.on("ServiceWorker.workerRegistrationUpdated", note)
    await debugger.send("ServiceWorker.enable")
    registration = await asyncio.wait_for(found, 10)
    message = {"origin": origin, "registrationId": registration, "data": json.dumps(payload)}
    await debugger.send("ServiceWorker.deliverPushMessage", message)
