// The page: opens addresses, puts fragments in, and keeps what is shown up to date.
// Fragments come from our own server, which escapes and cleans them; nothing else becomes HTML.

import { KEY, call, fetchPart, follow, frame, make, readUser } from "./server.js";

const same = (text) => text;
const rules = { createHTML: same, createScriptURL: same };
export const policy = window.trustedTypes?.createPolicy("backburner", rules) ?? rules;

const find = (selector) => document.querySelector(selector);
export const words = JSON.parse(find('meta[name="words"]').content);
export const shell = find(".shell");
export const main = find("#main");
export const sidebar = find("#sidebar");
export const NARROW = matchMedia("(max-width: 760px)");

export const pause = (milliseconds) => new Promise((go) => setTimeout(go, milliseconds));

/** Act on an event in an element that matches, whenever it is put in. An error is shown as a toast. */
export function on(kind, selector, act) {
  document.addEventListener(kind, async (event) => {
    const found = event.target.closest?.(selector);
    try {
      if (found) await act(found, event);
    } catch (error) {
      say(error.message);
    }
  });
}

export const emit = (name, detail, target = document) => target.dispatchEvent(new CustomEvent(name, { bubbles: true, detail }));

// A bare number is dollars.
on("change", "[data-money]", (field) => (field.value = field.value.replace(/^\s*(?=[\d.]+\s*$)/, "$")));

// ---- Fragments -------------------------------------------------------------------------------

export function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = policy.createHTML(html);
  return template.content;
}

/** Copy a template of the frame, and set properties of elements in it. */
export function copy(id, filled = {}) {
  const copied = document.getElementById(id).content.firstElementChild.cloneNode(true);
  for (const [selector, values] of Object.entries(filled)) Object.assign(copied.querySelector(selector), values);
  return copied;
}

/** Change the content of an element to that of a fragment, and keep what stays the same. */
export function patch(element, fresh) {
  morphChildren(element, fresh);
  emit("patched", null, element);
}

function morphChildren(old, fresh) {
  const keyed = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
  // First what is gone, so that what stays need not move: that would take the focus from it.
  const wanted = new Set([...fresh.children].map((child) => child.id));
  for (const [id, child] of keyed) if (!wanted.has(id)) child.remove();
  let next = old.firstChild;
  for (const node of [...fresh.childNodes]) {
    const named = keyed.get(node.id);
    // Space that stood between what is gone is no reason to move what follows.
    while (named && next?.nodeType === Node.TEXT_NODE) {
      const space = next;
      next = next.nextSibling;
      space.remove();
    }
    const known = named ?? (next && !next.id && !node.id && next.nodeName === node.nodeName ? next : null);
    if (known && known === next) next = next.nextSibling;
    else old.insertBefore(known ?? node, next);
    if (known) morph(known, node);
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}

/** Attributes that scripts set, such as the place of a menu that is open. */
const OURS = new Set(["open", "aria-current", "style", "data-toggled", "data-opened"]);

export function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old.dataset.busy !== undefined) return;
  // What the user works in is theirs: forms, and what they have opened. A menu that is closed is not.
  const isClosed = old.popover && !old.matches(":popover-open");
  const { keep, load, toggled, opened } = old.dataset;
  if (keep !== undefined && fresh.dataset.keep !== undefined && !isClosed) return;
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !OURS.has(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    const stays = name === "open" || (name === "aria-expanded" && toggled) || (name === "hidden" && opened !== undefined);
    if (!stays) old.setAttribute(name, value);
  }
  if (old.type === "radio" || old.type === "checkbox") old.checked = fresh.checked;
  // What was loaded when it was opened is not in the fragment.
  if (opened === undefined || !load) morphChildren(old, fresh);
  else if (!old.hidden) loadDetails(old).catch(() => {});
}
export const loadDetails = async (target) => patch(target, parse(await fetchPart(target.dataset.load)));

// In milliseconds. The server takes ten requests a second from all tabs together, so in a storm of changes each element waits.
export const REST = 1000;
export const LONG_REST = 5000;

/** Elements that are being fetched, or rest after that. */
const loading = new Map();

/** Load the fragment of an element again; changes that come meanwhile load it once more, or `now`. */
export async function refresh(element, now = false) {
  const known = loading.get(element);
  if (known) {
    known.again = true;
    return now && known.end?.();
  }
  const mine = { again: false };
  loading.set(element, mine);
  const source = element.dataset.src;
  let rest = document.hidden ? LONG_REST : REST;
  try {
    const content = parse(await fetchPart(source));
    if (!element.isConnected || element.dataset.src !== source) return void (rest = 0);
    const root = element.id && content.getElementById(element.id);
    if (root) morph(element, root);
    else morphChildren(element, content);
    emit("patched", null, element);
  } catch (error) {
    if (error.status === 401) leave();
    // What is refused for a while is asked for again; what is gone is not.
    else if (!error.status || error.status === 429 || error.status >= 500) [mine.again, rest] = [true, LONG_REST];
  } finally {
    mine.end = () => {
      if (loading.get(element) !== mine) return;
      loading.delete(element);
      if (mine.again && element.isConnected) refresh(element);
    };
    setTimeout(mine.end, rest);
  }
}

// ---- Addresses -------------------------------------------------------------------------------

// Not of the page: the API, downloads, and what is shown to who is not signed in.
const PAGES = /^\/(?!api\/|assets\/|oauth\/|sign-in|reset|invitation|health|ready|metrics)/;
let opening = 0;
/** Changes that came while a page was on its way, which it may not show. */
let heard;
let title = words.name;

const views = [];
/** What ends what is shown; null while it is still being started. */
let ends;

/** Call a function with each such element of `main` whenever it was opened; what it returns ends it. */
export function onView(selector, start) {
  views.push([selector, start]);
  if (ends) begin([selector, start]);
}

function begin([selector, start]) {
  for (const found of main.querySelectorAll(selector)) ends.push(start(found));
}

const MODULES = {
  "[data-chat]": "chat",
  "[data-settings], [data-connections], [data-when]": "setup",
};

/** Load the scripts of what is shown; each is loaded once. */
export async function loadModules(shown = main) {
  for (const [selector, name] of Object.entries(MODULES)) {
    if (shown.querySelector(selector)) await import(`./${name}.js`).catch(() => say(words.failed));
  }
}

export async function open(path, { push = true, focus = true } = {}) {
  const mine = (opening += 1);
  heard = [];
  const url = new URL(path, location.href);
  // The server has been updated since: the next page is of its version as a whole.
  if (push && frame.isOld) return location.assign(url);
  main.ariaBusy = "true";
  const content = await fetchPart(`/page${url.pathname}${url.search}`).then(parse, (error) => (error.status === 401 ? leave() : describeProblem(error, url.pathname)));
  if (mine !== opening || !content) return;
  if (push && url.href !== location.href) history.pushState(null, "", url);
  main.replaceChildren(content);
  main.ariaBusy = null;
  // A chat that is not shown yet could not be scrolled to its end.
  shell.hidden = false;
  const view = main.querySelector("[data-title]")?.dataset;
  title = view?.title ? `${view.title} · ${words.name}` : words.name;
  shell.dataset.at = view?.at ?? "page";
  markMain();
  markCurrent();
  for (const end of ends ?? []) end?.();
  ends = null;
  await loadModules();
  if (mine !== opening) return;
  ends = [];
  views.forEach(begin);
  emit("patched", null, main);
  const late = heard;
  heard = null;
  for (const change of late) tell(change);
  if (focus && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
  if (url.hash) document.getElementById(url.hash.slice(1))?.scrollIntoView();
}

export const reopen = () => open(location.href, { push: false, focus: false });
on("click", "[data-reopen]", reopen);

function describeProblem({ status, message }, path) {
  if (status === 404) return copy("gone");
  if (status) return copy("failed", { p: { textContent: message } });
  const shown = copy("offline");
  // What was being written, while there is no conversation to show.
  const field = shown.querySelector("textarea");
  const writes = /^\/(?:c\/(\w+)|new)?$/.exec(path);
  const key = `backburner-text:${writes?.[1] ?? "new"}`;
  if (!writes) field.remove();
  field.value = localStorage.getItem(key) ?? "";
  field.oninput = () => localStorage.setItem(key, field.value);
  return shown;
}

/** On phones the list takes the place of the page. */
function markMain() {
  sidebar.role = NARROW.matches && shell.dataset.at === "list" ? "main" : "complementary";
}
NARROW.addEventListener("change", markMain);

export function markCurrent() {
  for (const link of document.querySelectorAll(".sidebar a, .tabs a")) {
    const path = link.getAttribute("href");
    const { also = "", tab } = link.dataset;
    const isWithin = (one) => one[1] && `${location.pathname}/`.startsWith(`${one}/`);
    const isCurrent = path === location.pathname || tab === shell.dataset.at || [path, ...also.split(" ")].some(isWithin);
    link.ariaCurrent = isCurrent ? "page" : null;
  }
  const count = find("#nav")?.dataset.needs ?? "0";
  showCount(count);
  document.title = count === "0" ? title : `(${count}) ${title}`;
  for (const badge of document.querySelectorAll("[data-count]")) {
    badge.textContent = count;
    badge.hidden = count === "0";
  }
}

export function leave(to = location.pathname + location.search) {
  localStorage.removeItem(KEY);
  services?.controller?.postMessage({ ended: true });
  location.assign(`/sign-in${to === "/" ? "" : `?next=${encodeURIComponent(to)}`}`);
}

// Another tab has signed out, or somebody else in: nothing of before stays open.
const user = readUser();
addEventListener("storage", () => {
  if (!localStorage.getItem(KEY)) leave(readUser() ? undefined : "/");
  else if (readUser() !== user) location.reload();
});

addEventListener("popstate", () => open(location.href, { push: false }));
on("click", "a[href]", (link, event) => {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  if (link.origin !== location.origin || link.target || link.hasAttribute("download") || !PAGES.test(link.pathname)) return;
  if (link.pathname === location.pathname && link.hash) return;
  event.preventDefault();
  link.closest("[popover]")?.hidePopover();
  return open(link.href);
});

// ---- Toasts, and what screen readers hear ------------------------------------------------------

let toast;

export const announce = (text) => (find("#said").textContent = text);

export function say(text, action, { stays = false } = {}) {
  toast?.remove();
  const shown = (toast = make("div", "", { className: "toast", role: "status" }, make("span", text)));
  const end = () => shown.remove();
  if (action) shown.append(make("button", action.label, { type: "button", onclick: () => action.act(end()) }));
  document.body.append(shown);
  // It stays while somebody is about to press its button.
  const wait = () => setTimeout(() => (shown.matches(":hover, :focus-within") ? wait() : end()), 8000);
  if (!stays) wait();
  return end;
}

// ---- Lists that are shown in parts ----------------------------------------------------------------

const nearEnd = new IntersectionObserver(async (entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting || target.dataset.loading) continue;
    target.dataset.loading = "1";
    nearEnd.unobserve(target);
    const { more } = target.dataset;
    const content = await fetchPart(more).then(parse, () => null);
    if (!content) await pause(REST);
    delete target.dataset.loading;
    // What it ends may have been loaded again meanwhile.
    if (content && target.dataset.more === more) target.replaceWith(content);
    const list = loading.get(find("#list"));
    if (content && list && !list.end) emit("longer");
    watchEnds();
  }
}, { rootMargin: "400px" });

function watchEnds() {
  for (const end of document.querySelectorAll("[data-more]:not([data-loading])")) nearEnd.observe(end);
}

// ---- Changes -----------------------------------------------------------------------------------

/** What nobody sees is loaded when somebody looks, apart from what the title and notifications are made of. */
let missed;
document.addEventListener("visibilitychange", () => {
  if (document.hidden || !missed) return;
  missed = false;
  tell({}, true);
});

/** Fetch again what a change concerns; without a kind, it may be anything. */
export function tell(change, now = false) {
  heard?.push(change);
  missed ||= document.hidden;
  const { kind, conversation } = change;
  for (const element of document.querySelectorAll(document.hidden ? "#nav, #bell" : kind ? "[data-on]" : "[data-src]")) {
    const wanted = element.dataset.on?.split(" ");
    if (!kind || wanted.includes(kind) || wanted.includes(conversation)) refresh(element, now);
  }
  emit("changed", change);
}

let lost;
export const { begin: beginStream, askForDrafts } = follow({
  change: (change) => tell(change),
  draft: (draft) => emit("draft", draft),
  reset: () => tell({}),
  lost(retry) {
    lost ??= say(words.lost, { label: words.try_now, act() { lost = null; retry(); } }, { stays: true });
  },
  back() {
    lost = lost?.();
    if (!find("#list")) loadSidebar();
    if (main.querySelector(".away")) reopen();
  },
  refused: () => leave(),
});

document.addEventListener("patched", ({ target }) => {
  if (target.id === "nav") markCurrent();
  loadModules();
  watchEnds();
});

// Times that come nearer, once a minute.
setInterval(() => {
  for (const time of document.querySelectorAll("time.in")) {
    const left = new Date(time.dateTime) - Date.now() - frame.ahead;
    const minutes = Math.floor(left / 60_000);
    if (minutes >= 60) continue;
    time.closest("a, .chip")?.querySelector(".pie")?.setAttribute("stroke-dasharray", `${100 - Math.max(left, 0) / 36_000} 100`);
    time.textContent = minutes < 1 ? words.in_a_moment : words.in_minutes.replace("{number}", minutes);
  }
  for (const element of document.querySelectorAll("[data-each-minute]")) refresh(element);
}, 60_000);

// What is looked at again every few seconds, while something runs.
let seconds = 0;
setInterval(() => {
  seconds += 1;
  if (!document.hidden) for (const element of main.querySelectorAll("[data-every]")) if (!(seconds % element.dataset.every)) refresh(element);
}, 1000);

// ---- The browser around the page: its worker, the icon with a count, and whether somebody is here ----

export const NOTIFY = "backburner-notify";
const ACTIVE = "backburner-active";
const AWAY = 4 * 3_600_000;
const services = navigator.serviceWorker;
export const registered = Promise.resolve(services?.register(policy.createScriptURL("/sw.js")).then(() => services.ready)).catch(() => {});
services?.addEventListener("message", ({ data }) => data.open && open(data.open));

/** Notifications are on in this browser, perhaps since a moment ago in another tab. */
const notify = () => localStorage.getItem(NOTIFY) && import("./setup.js").catch(() => {});
addEventListener("storage", ({ key }) => key === NOTIFY && notify());

let drawn = "0";
const icon = find("link[rel=icon]");
const plain = icon.href;

function showCount(needed) {
  if (needed === drawn) return;
  drawn = needed;
  navigator.setAppBadge?.(needed).catch(() => {});
  const drawing = icon.dataset.counting.replace("{number}", needed > 9 ? "9+" : needed);
  icon.href = needed === "0" ? plain : URL.createObjectURL(new Blob([drawing], { type: "image/svg+xml" }));
}

/** Since when somebody was away who is here again, until they know what happened. */
let since;

/** Note that somebody is here; a chat offers what happened while they were away. */
function noteActive() {
  if (document.hidden) return;
  const now = Date.now();
  const last = Number(localStorage.getItem(ACTIVE)) || now;
  // Where there is no room, the time before counts.
  try { localStorage.setItem(ACTIVE, now); } catch {}
  if (now - last > AWAY) since = new Date(last).toISOString();
  offerNews();
}
setInterval(noteActive, 60_000);
document.addEventListener("visibilitychange", noteActive);

async function offerNews() {
  const foot = main.querySelector("[data-chat] > .foot");
  if (!since || !foot || find("#away-offer")) return;
  const { firstElementChild: line } = parse(await fetchPart(`/page/away/offer?since=${since}`).catch(() => ""));
  if (line && foot.isConnected && !find("#away-offer")) foot.prepend(line);
}
onView("[data-chat]", () => void offerNews());
on("click", "[data-offer-close]", (button) => {
  since = null;
  button.parentElement.remove();
});

// "While you were away" counts as seen once it was shown. The same is shown when it is loaded again.
onView("[data-seen]", (page) => {
  const timer = setInterval(async () => {
    if (document.hidden) return;
    clearInterval(timer);
    since = null;
    await call("POST", "/api/away/seen", { until: page.dataset.seen }).catch(() => {});
    if (page.isConnected) history.replaceState(null, "", `/away?since=${encodeURIComponent(page.dataset.since)}`);
  }, 800);
  return () => clearInterval(timer);
});

// ---- Start: once the scripts of the frame are there -------------------------------------------------

async function enter() {
  if (!localStorage.getItem(KEY)) return leave();
  await Promise.all([loadSidebar(), open(location.href, { push: false, focus: false })]);
  beginStream();
  noteActive();
  notify();
  // What a page has left to say that led here.
  const told = sessionStorage.getItem("backburner-said");
  sessionStorage.removeItem("backburner-said");
  if (told) say(told);
}

/** What the list shows, for as long as the tab. */
export const FILTER = "backburner-filter";

let isLoading;
async function loadSidebar() {
  if (isLoading) return;
  isLoading = true;
  try {
    patch(sidebar, parse(await fetchPart(`/page/sidebar?state=${sessionStorage.getItem(FILTER) ?? ""}`)));
  } catch ({ status, message }) {
    if (status === 401) return leave();
    if (status) say(message);
  }
  isLoading = false;
  shell.hidden = false;
  markCurrent();
}
addEventListener("DOMContentLoaded", enter);
