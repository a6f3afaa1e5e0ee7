// Shows push messages, and the frame of the page while the server is away. Nothing of a user is kept.
/* global FRAME */

const { version, files, icon, badge } = FRAME;
const PREFIX = "backburner-";
const PAGES = /^\/(?!api\/|page\/|assets\/|oauth\/|sign-in|reset|invitation|health|ready|metrics)/;

const frame = () => caches.match("/", { cacheName: PREFIX + version });

addEventListener("install", (event) => {
  event.waitUntil(caches.open(PREFIX + version).then((cache) => cache.addAll(["/", ...files])).then(() => skipWaiting()));
});

addEventListener("activate", (event) => {
  const drop = (name) => name.startsWith(PREFIX) && name !== PREFIX + version && caches.delete(name);
  event.waitUntil(caches.keys().then((names) => Promise.all(names.map(drop))).then(() => clients.claim()));
});

addEventListener("fetch", (event) => {
  const { pathname } = new URL(event.request.url);
  if (event.request.mode === "navigate" && PAGES.test(pathname)) {
    // A proxy answers in place of a server that is away.
    event.respondWith(fetch(event.request).then(async (answer) => (answer.status > 501 && (await frame())) || answer, async () => (await frame()) ?? Response.error()));
  } else if (files.includes(pathname)) {
    event.respondWith(caches.match(pathname).then((kept) => kept ?? fetch(event.request)));
  }
});

const tell = ({ title, body, tag, url }) => registration.showNotification(title, { body, tag, icon, badge, data: url });

addEventListener("push", (event) => {
  event.waitUntil(tell(event.data?.json() ?? { title: "Backburner" }));
});

const windows = () => clients.matchAll({ type: "window", includeUncontrolled: true });

async function end() {
  for (const shown of await registration.getNotifications()) shown.close();
  await (await registration.pushManager.getSubscription())?.unsubscribe();
}

addEventListener("message", (event) => {
  const { notice, ended } = event.data;
  if (ended) event.waitUntil(end());
  else event.waitUntil(windows().then((pages) => pages.some((page) => page.visibilityState === "visible") || tell(notice)));
});

addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(show(new URL(event.notification.data ?? "/", location.origin).href));
});

async function show(url) {
  const page = (await windows()).find((one) => PAGES.test(new URL(one.url).pathname));
  if (!page) return clients.openWindow(url);
  page.postMessage({ open: url });
  return page.focus();
}
