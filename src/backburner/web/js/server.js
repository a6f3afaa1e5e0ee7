// The server: requests with both halves of the session, and the stream of changes, which is one for all tabs.

// Half of the session. The other half is a cookie, which every port of this host can read.
export const KEY = "backburner-session";

// Chosen by the user for this browser; without it, that of the system.
export const THEME = "backburner-theme";

// Who is signed in, so that nobody else finds what is kept for them.
const USER = "backburner-user";
export const readUser = () => localStorage.getItem(USER);

/** Keep a new session. What is kept of another user ends with theirs. */
export function keepSession({ key, user }) {
  if (readUser() !== user) forget();
  localStorage.setItem(USER, user);
  localStorage.setItem(KEY, key);
}

/** Forget all that this browser keeps of a user: drafts, and how they use the page. */
export function forget() {
  const theme = localStorage.getItem(THEME);
  sessionStorage.clear();
  localStorage.clear();
  if (theme) localStorage.setItem(THEME, theme);
}

export function showTheme() {
  document.documentElement.dataset.theme = localStorage.getItem(THEME) ?? "";
}
showTheme();

export class RequestFailed extends Error {
  constructor(status, body) {
    const { detail, hint, errors = [] } = body ?? {};
    const about = errors.map(({ where, what }) => `${where.split(".").pop()}: ${what}.`);
    const text = [detail, hint, ...about].filter(Boolean).join(" ");
    super(text.replace(/\x60([^\x60]*)\x60/g, "“$1”") || `The server answered ${status}.`);
    this.status = status;
    this.fields = errors.map(({ where }) => where.replace(/^body\./, ""));
  }
}

async function send(method, path, headers, body) {
  const key = localStorage.getItem(KEY);
  if (key) headers["x-backburner-session"] = key;
  // The default mode: in others the browser does not send the origin of the page.
  const response = await fetch(path, { method, headers, body }).catch(() => {
    throw new Error("Backburner does not respond. Check that it is running, and try again.");
  });
  // Another tab has a new session meanwhile, for example with a new password.
  if (response.status === 401 && key !== localStorage.getItem(KEY)) return send(method, path, headers, body);
  if (!response.ok) throw new RequestFailed(response.status, await response.json().catch(() => null));
  return response;
}

const JSON_TYPE = { "content-type": "application/json" };

export async function call(method, path, body, key) {
  const headers = { ...JSON_TYPE, ...(key && { "idempotency-key": key }) };
  const response = await send(method, path, headers, body && JSON.stringify(body));
  return response.json().catch(() => null);
}

/** Keys of requests that have had no answer: the server may have executed them. */
const unanswered = new Map();

/** Ask for what is not to happen twice: repeated after a lost answer, it is not executed again. */
export async function callOnce(method, path, body) {
  const request = [method, path, JSON.stringify(body)].join(" ");
  const key = unanswered.get(request) ?? crypto.randomUUID();
  unanswered.delete(request);
  return call(method, path, body, key).catch((error) => {
    if (!error.status || error.status >= 500) unanswered.set(request, key);
    throw error;
  });
}

/** Upload a file as it is. */
export const upload = async (path, file) => (await send("POST", path, { "content-type": "application/octet-stream" }, file)).json();

/** Fetch the bytes of a file of the user. */
export const fetchFile = async (digest) => (await send("GET", `/api/files/${digest}`, {})).blob();

/** What this tab has heard of changes, and whether it is the one that reads their stream. */
export const stream = { last: null, follows: false, leads: false };

/** What fragments say of the server: it was updated, and how many milliseconds its clock is ahead of that of the browser. */
export const frame = { isOld: false, ahead: 0 };
/** The address of a script has the version of all of them. */
const VERSION = import.meta.url.split("/").at(-2);

/** Fetch a fragment of the page; one about what is sent, if something is. Those before the stream say after which change it has to begin. */
export async function fetchPart(path, body) {
  const headers = { accept: "text/html", ...(body && JSON_TYPE), ...(!stream.follows && { "x-backburner-first": "1" }) };
  const response = await send(body ? "POST" : "GET", path, headers, body && JSON.stringify(body));
  frame.isOld ||= (response.headers.get("x-backburner-version") ?? VERSION) !== VERSION;
  frame.ahead = Date.parse(response.headers.get("date")) - Date.now() || 0;
  const change = response.headers.get("x-backburner-change");
  if (change && !stream.follows) stream.last = Math.min(stream.last ?? change, change);
  return response.text();
}

/** Make an element. Content is set as text, so that none can become code. */
export function make(tag, text, properties, ...parts) {
  const made = Object.assign(document.createElement(tag), { textContent: text, ...properties });
  made.append(...parts);
  return made;
}

// ---- The stream: the tab that holds the lock reads it, and tells the others --------------------

const LOCK = "backburner-stream";
const MAX_DRAFTS = 20;
const PAUSES = [500, 1000, 2000, 5000, 10_000];

/**
 * Follow the changes of the user: `change`, `draft`, `reset`, `lost`, `back` and `refused`.
 * `begin` begins after the fragments so far; `askForDrafts` is for a view that is opened now.
 */
export function follow(listener) {
  const channel = new BroadcastChannel(LOCK);
  const drafts = new Map();
  let wake = () => {};
  const sendDrafts = (to) => drafts.forEach((draft) => to({ ...draft, again: true }));
  const hearers = {
    ...listener,
    lost: () => listener.lost(() => tell({ name: "try" })),
    try: () => wake(),
    joined: () => sendDrafts((data) => channel.postMessage({ name: "draft", data })),
  };

  function hear({ name, data, id }) {
    if (id) stream.last = id;
    hearers[name]?.(data);
  }

  function tell(event) {
    channel.postMessage(event);
    hear(event);
  }

  // The last ones are kept for tabs that join; those know from their conversation which is still written.
  function keepDraft({ conversation, run, fresh, blocks, open }) {
    const known = drafts.get(conversation);
    const kept = known?.run === run && !fresh ? known : { conversation, run, blocks: [], fresh: true };
    const text = kept.open?.block === open.block ? kept.open.text.slice(0, open.at) : "";
    kept.blocks.push(...blocks);
    kept.open = { ...open, at: 0, text: text + open.text };
    drafts.set(conversation, kept);
    if (drafts.size > MAX_DRAFTS) drafts.delete(drafts.keys().next().value);
  }

  async function read() {
    // Without a key the page is about to leave for the sign-in.
    if (!localStorage.getItem(KEY)) return;
    const { body } = await send("GET", "/page/stream", { accept: "text/event-stream", ...(stream.last !== null && { "last-event-id": stream.last }) });
    tell({ name: "back" });
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = "", part; !(part = await reader.read()).done; ) {
      const events = (text + part.value).split("\n\n");
      text = events.pop();
      for (const lines of events) {
        const { event: name, id, data } = Object.fromEntries([...lines.matchAll(/^(\w+): (.*)/gm)].map(([, field, value]) => [field, value]));
        if (!name) continue;
        const event = { name, id, data: JSON.parse(data) };
        if (name === "draft") keepDraft(event.data);
        tell(event);
      }
    }
  }

  async function lead() {
    stream.leads = true;
    for (let failures = 0; ; failures += 1) {
      const began = Date.now();
      await read().catch(({ status }) => status === 401 && tell({ name: "refused" }));
      if (Date.now() - began > 10_000) failures = 0;
      if (failures > 0) tell({ name: "lost" });
      await new Promise((go) => {
        wake = go;
        setTimeout(go, PAUSES[failures] ?? PAUSES.at(-1));
      });
    }
  }

  channel.onmessage = ({ data }) => hear(data);
  addEventListener("online", () => wake());

  return {
    begin() {
      stream.follows = true;
      if (navigator.locks) navigator.locks.request(LOCK, lead);
      else lead();
    },
    askForDrafts() {
      sendDrafts(listener.draft);
      channel.postMessage({ name: "joined" });
    },
  };
}
