// Setting up: the theme, models, connections, imports, and notifications of this browser.

import { openDialog, readForm, showError, showResult } from "./controls.js";
import { NOTIFY, on, onView, parse, patch, refresh, registered, say, words } from "./page.js";
import { KEY, THEME, call, fetchPart, make, showTheme, stream } from "./server.js";

// ---- Settings --------------------------------------------------------------------------------

onView("[data-settings]", (page) => {
  for (const choice of page.querySelectorAll("[name=theme]")) {
    choice.checked = choice.value === (localStorage.getItem(THEME) ?? "");
    choice.onchange = () => {
      localStorage.setItem(THEME, choice.value);
      showTheme();
    };
  }
  page.querySelector("#zones")?.append(...listOptions(Intl.supportedValuesOf("timeZone")));
});

const listOptions = (values) => values.map((value) => make("option", "", { value }));

/** Read a model as it is entered; its name is that of a profile which may exist. */
function readEntry({ dataset, form }) {
  if (dataset.profile) return { profile: dataset.profile };
  const { name, use_for, ...entry } = readForm(form);
  return { entry, profile: form.dataset.profile || null };
}

const offer = (form, models) => form?.querySelector("datalist").replaceChildren(...listOptions(models));

on("click", "[data-try]", async (button) => {
  const { form } = button;
  if (form && !form.reportValidity()) return;
  const shown = document.getElementById(button.dataset.try);
  button.disabled = true;
  shown.dataset.works = "";
  shown.hidden = true;
  try {
    const result = await call("POST", "/api/operate/models/test", readEntry(button));
    shown.dataset.works = result.works;
    showResult(shown.id, { ...result, seconds: Math.max(result.latency_ms / 1000, 0.1).toFixed(1) });
    offer(form, result.offered);
  } catch (error) {
    showError(form, error);
  }
  button.disabled = false;
});

// What the server offers is asked for when its model is to be chosen.
on("focusin", "[data-offers] [name=model]", async (field) => {
  const entered = readEntry(field);
  const asked = JSON.stringify(entered);
  const { dataset } = field.form;
  if (dataset.offers === asked) return;
  dataset.offers = asked;
  const offered = await call("POST", "/api/operate/models/offered", entered).catch(() => null);
  if (offered) offer(field.form, offered.models);
});

// A link cannot send the page's half of the session, so its address is made when it is asked for.
on("click", "[data-download]", async ({ dataset }) => {
  location.assign((await call("POST", "/api/downloads", { item: dataset.download })).address);
});

// ---- Connections -----------------------------------------------------------------------------

/** Show where the browser goes to sign in, and go there when the user says so. */
export async function connect(id) {
  const dialog = await openDialog(`/page/connections/${id}/sign-in`);
  const form = dialog.querySelector("form");
  const find = (name) => form.querySelector(`[data-${name}]`);
  const go = find("go-there");
  // A key is typed in instead.
  if (!go) return;
  const state = find("state");
  const begin = async () => {
    state.hidden = false;
    find("begun").hidden = go.hidden = true;
    try {
      const begun = await call("POST", `/api/connections/${id}/sign-in`, readForm(form));
      if (!/^https?:/.test(begun.url)) throw new Error(form.dataset.notAPage);
      for (const slot of form.querySelectorAll("[data-slot]")) slot.textContent = begun[slot.dataset.slot];
      const scopes = find("scopes");
      const names = begun.scopes.length ? begun.scopes : [scopes.dataset.none];
      scopes.replaceChildren(...names.map((name) => make("li", name)));
      go.href = begun.url;
      go.textContent = go.dataset.label.replace("{host}", begun.host);
      find("begun").hidden = go.hidden = false;
      form.querySelector(".problem")?.remove();
      go.focus();
    } catch (error) {
      find("more-about").open = true;
      showError(form, error);
    }
    state.hidden = true;
  };
  form.onsubmit = (event) => {
    event.preventDefault();
    begin();
  };
  go.onclick = () => {
    const here = location.pathname + location.search;
    sessionStorage.setItem("backburner-return", here.startsWith("/connections") ? `/connections/${id}` : here);
  };
  state.hidden = true;
  if (form.dataset.asksFirst === undefined) await begin();
}

document.addEventListener("performed", ({ target, detail }) => {
  const { adds, check, removes, sent } = target.dataset;
  const { connection, error, hint, left_out, not_ended_at: host, problem } = detail ?? {};
  if (adds !== undefined && connection.state === "signing_in") connect(connection.id);
  if (check !== undefined) {
    const tools = Object.keys(left_out).join(", ");
    say(error ? `${error} ${connection.state === "ready" ? hint : ""}` : tools ? words.left_out.replace("{tools}", () => tools) : words.checked);
  }
  if (removes !== undefined && host) say(words.not_ended.replace("{host}", () => host));
  if (sent) say(detail.sent ? sent : `${problem} ${hint}`);
});

// A bare token in the header Authorization is one of its usual kind.
document.addEventListener("submit", ({ target }) => {
  for (const field of target.querySelectorAll("[data-key]")) {
    const value = field.value.trim();
    const usual = field.name.toLowerCase() === "headers.authorization" && !value.includes(" ") ? "Bearer " : "";
    const prefix = field.dataset.prefix ?? usual;
    if (value && !value.startsWith(prefix)) field.value = prefix + value;
  }
}, true);

function filter({ value, dataset }) {
  const wanted = value.trim().toLowerCase();
  const items = [...document.querySelectorAll(`#${dataset.filter} > [data-item]`)];
  for (const item of items) item.hidden = !item.textContent.toLowerCase().includes(wanted);
  document.getElementById(dataset.none).hidden = items.some((item) => !item.hidden);
}

on("input", "input[data-filter]", filter);
on("input", "[data-names]", ({ value, dataset }) => {
  document.getElementById(dataset.names).name = value && `headers.${value.trim()}`;
});

// ---- Imports: the server says what is in a file, and what is ticked is added one by one --------

const MAX_CHARS = 500_000;
/** The text of a file that is imported. It has secrets, so no field keeps it. */
let imported = "";

async function look(form, text) {
  const found = document.querySelector("#import-found");
  try {
    if (text.length > MAX_CHARS) throw new Error(form.dataset.tooLarge);
    const content = parse(await fetchPart("/page/connections/imports", { content: text }));
    form.querySelector(".problem")?.remove();
    imported = text;
    form.reset();
    form.hidden = true;
    patch(found, content);
    found.querySelector("h4").focus();
  } catch (error) {
    showError(form, error);
  }
}

/** Add a server of the file; say whether that worked. */
async function add(form, row) {
  const box = row.querySelector("[type=checkbox]");
  const asked = [...row.querySelectorAll("[data-ask]")].map(({ dataset, value }) => [dataset.ask, value.trim()]);
  const values = Object.fromEntries(asked.filter(([, value]) => value));
  row.querySelector(".problem")?.remove();
  try {
    const { connection } = await call("POST", "/api/connections/imports", { content: imported, number: Number(box.value), url: box.dataset.url, values });
    const link = row.querySelector(".state");
    link.href = `/connections/${connection.id}`;
    link.lastElementChild.textContent = connection.state === "signing_in" ? form.dataset.signIn : form.dataset.open;
    link.hidden = false;
    row.querySelector(".about-import").remove();
    box.checked = false;
    box.disabled = true;
    return true;
  } catch (error) {
    showError(row, error);
    return false;
  }
}

on("submit", "[data-look]", (form, event) => {
  event.preventDefault();
  return look(form, form.elements.content.value);
});
on("submit", "[data-add-chosen]", async (form, event) => {
  event.preventDefault();
  const rows = [...form.querySelectorAll("[data-server]:has(:checked)")];
  if (!rows.length) return say(form.dataset.none);
  const button = form.querySelector("[type=submit]");
  const label = button.textContent;
  button.disabled = true;
  button.textContent = form.dataset.adding;
  let added = 0;
  for (const row of rows) added += await add(form, row);
  refresh(document.querySelector("#connection-list"));
  say(added === rows.length ? form.dataset.added : form.dataset.failed);
  button.disabled = false;
  button.textContent = label;
  button.hidden = !form.querySelector("[type=checkbox]:enabled");
});
on("change", "[data-import-file]", async (field) => {
  if (!field.files.length) return;
  await look(field.form, await field.files[0].text());
  field.value = "";
});
on("click", "[data-another]", () => {
  imported = "";
  document.querySelector("#import-found").replaceChildren();
  const form = document.querySelector("[data-look]");
  form.hidden = false;
  form.elements.content.focus();
});

// ---- Notifications: while a page is open and not in front, and pushed when none is ----------------

const MADE = "backburner-push";
const PUSH = "/api/push";
const ROWS = `${PUSH}/subscriptions`;
const known = new Set();
const bell = () => document.querySelector("#bell")?.dataset ?? {};
const subscription = async () => (await registered)?.pushManager?.getSubscription();

/** What this browser does: no, denied, off, open (while a page is open), or on. */
async function readState() {
  if (!window.Notification || !(await registered)) return "no";
  const { permission } = Notification;
  if (permission === "denied") return permission;
  if (permission !== "granted" || localStorage.getItem(NOTIFY) !== bell().user) return "off";
  return (await subscription()) ? "on" : "open";
}

async function showState() {
  const state = await readState();
  for (const part of document.querySelectorAll("[data-when]")) part.hidden = !part.dataset.when.split(" ").includes(state);
}

/** Have notices pushed to this browser, for as long as its session lasts. */
async function subscribe(isAsked) {
  const { key, problem } = await call("GET", PUSH);
  if (problem) throw new Error(problem);
  const made = localStorage.getItem(MADE);
  const mark = key + localStorage.getItem(KEY).slice(-9);
  let own = await subscription();
  if (own && made === mark && !isAsked) return (await findRow()) || turnOff();
  // One for another key of the server is of no use.
  if (own && !made?.startsWith(key)) own = await own.unsubscribe() && null;
  own ||= await (await registered).pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  await call("POST", ROWS, own);
  localStorage.setItem(MADE, mark);
}

const findRow = async () => (await call("GET", ROWS)).items.find((one) => one.is_this);

async function turnOn() {
  if ((await Notification.requestPermission()) !== "granted") return;
  localStorage.setItem(NOTIFY, bell().user);
  // What the browser says is of no use to anybody.
  await subscribe(true).catch((error) => say(error instanceof DOMException ? words.no_push : error.message));
}

/** Also where somebody has removed this browser elsewhere. */
async function turnOff() {
  localStorage.removeItem(NOTIFY);
  const row = await findRow();
  if (row) await call("DELETE", `${ROWS}/${row.id}`);
  await (await subscription())?.unsubscribe();
}

on("click", "[data-sees]", ({ dataset }) => {
  if (dataset.sees) call("POST", "/api/notices/seen", { ids: [dataset.sees] }).catch(() => {});
});
on("click", "[data-notify]", async ({ dataset }) => {
  try {
    await (dataset.notify === "on" ? turnOn() : turnOff());
  } finally {
    await showState();
    if (document.querySelector(".notify")) refresh(document.querySelector("#section"));
  }
});

async function hearNotices(isNew) {
  const rows = [...document.querySelectorAll("#tray [data-notice]")].filter(({ id }) => !known.has(id));
  for (const { id } of rows) known.add(id);
  const isOn = /^o[pn]/.test(await readState());
  const registration = await registered;
  if (bell().unseen === "0") for (const shown of (await registration?.getNotifications()) ?? []) shown.close();
  // The tab that reads the stream speaks for all; the worker knows whether one of them is in front.
  if (isNew && stream.leads && document.hidden && isOn) for (const row of rows) registration.active.postMessage({ notice: JSON.parse(row.dataset.notice) });
  return isOn;
}

document.addEventListener("patched", ({ target }) => {
  document.querySelectorAll("input[data-filter]").forEach(filter);
  if (target.id === "bell") hearNotices(true);
  beginNotices();
  showState();
});

let isKnown = false;

/** Begin once the bell says who is signed in. */
function beginNotices() {
  if (isKnown || !bell().user) return;
  isKnown = true;
  // Its row ends with the session. Where the browser has no push service, it is not asked again.
  hearNotices().then((isOn) => isOn && localStorage.getItem(MADE) && subscribe()).catch(() => {}).finally(showState);
}
beginNotices();
