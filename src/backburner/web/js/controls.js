// What people work with: buttons and forms that ask the API, dialogs, menus, the list, previews, keys.

import { call, callOnce, fetchPart, forget, keepSession, make } from "./server.js";
import { FILTER, LONG_REST, NARROW, REST, announce, copy, emit, leave, loadDetails, loadModules, main, markCurrent, morph, on, onView, open, parse, patch, pause, refresh, reopen, say, shell, sidebar, tell, words } from "./page.js";

// ---- Buttons and forms -----------------------------------------------------------------------

/** Ask the API for what an element says: data-call is a method and a path. */
async function perform(element, body) {
  const [method, place] = element.dataset.call.split(" ");
  // A field may be a part of the address: /api/memories/{key}
  const path = place.replace(/\{(\w+)\}/g, (_, name) => {
    const value = body[name];
    delete body[name];
    return encodeURIComponent(value);
  });
  const result = await callOnce(method, path, body);
  const { also, go, keepsKey, leave: left, nextQuestion, quiet, result: shown, signsOut, toast, undo } = element.dataset;
  if (signsOut !== undefined) {
    forget();
    return leave("/");
  }
  // Whoever sets a password gets a new session.
  if (result?.key && keepsKey !== undefined) keepSession(result);
  if (shown) showResult(shown, result);
  if (also) refresh(document.getElementById(also));
  if (nextQuestion !== undefined) focusNext(element.closest(".question"));
  if (toast) say(toast, undo && { label: words.undo, act: () => act(undo) });
  emit("performed", result, element);
  if (go) await open(go.replace(/\{([\w.]+)\}/g, (_, name) => encodeURIComponent(pick(result, name))));
  else if (left && location.pathname.includes(left)) await open("/");
  else if (quiet === undefined) showChange(element);
}

const pick = (result, path) => path.split(".").reduce((value, name) => value?.[name], result) ?? "";

/** Show what the API answered in the fields of an element, once. */
export function showResult(id, result) {
  const place = document.getElementById(id);
  for (const field of place.querySelectorAll("[data-field]")) field.textContent = pick(result, field.dataset.field);
  place.hidden = false;
}

const findShown = (scope, selector) => [...scope.querySelectorAll(selector)].filter((one) => one.checkVisibility());

/** After an answer the focus goes to the next card. */
function focusNext(card) {
  const cards = findShown(main, ".question");
  const next = cards[cards.indexOf(card) + 1] ?? cards.find((other) => other !== card);
  (next?.querySelector("h2") ?? main).focus({ preventScroll: !next });
}

const act = (request) => call(...request.split(" ")).then(() => tell({}, true), (error) => say(error.message));

/** Show at once what a request has changed, without waiting for the event. */
function showChange(element) {
  const around = element.closest("[data-src]:not(#list)");
  const who = document.querySelector("#who");
  if (around) refresh(around, true);
  else if (main.contains(element)) reopen();
  if (who && who !== around) refresh(who, true);
  refreshList();
}

on("click", "button[data-call]", async (button) => {
  const { body, confirm: question } = button.dataset;
  if (question && !(await confirm(question, nameOf(button)))) return;
  button.closest("[popover]")?.hidePopover();
  button.disabled = true;
  await perform(button, body && JSON.parse(body)).catch((error) => showError(button.form ?? button.closest(".question, form"), error));
  button.disabled = false;
});

/** The words on a button, without its key. */
const nameOf = (button) => [...button.childNodes].filter((node) => node.nodeName !== "KBD").map((node) => node.textContent).join("");

on("submit", "form[data-call]", async (form, event) => {
  event.preventDefault();
  // Enter in a field that takes effect at once both changes and submits it.
  if (form.dataset.sending) return;
  form.dataset.sending = "1";
  clearErrors(form);
  const button = event.submitter ?? form.querySelector("[type=submit], button:not([type])") ?? {};
  button.disabled = true;
  try {
    await perform(form, readForm(form, event.submitter));
    if (form.dataset.reset !== undefined) form.reset();
    form.closest("dialog")?.close();
    form.closest("[popover]")?.hidePopover();
  } catch (error) {
    // Switches and selections go back to what it is; what was typed can be corrected.
    if (form.querySelector(":is(select, [type=checkbox], [type=radio])[data-submits]")) form.reset();
    // What the preview says is not said again.
    if (form.querySelector(".preview .problem")) form.querySelector("[data-preview]").focus();
    else showError(form, error);
  }
  delete form.dataset.sending;
  button.disabled = false;
});

// Switches and selections that take effect at once.
on("change", "[data-submits]", (field) => field.form.requestSubmit());

const KINDS = { number: Number, json: JSON.parse };

export function readForm(form, submitter) {
  const body = JSON.parse(form.dataset.body ?? "{}");
  if (submitter?.name) body[submitter.name] = submitter.value;
  for (const { name, type, disabled, checked, value, dataset } of form.elements) {
    if (!name || disabled || type === "submit" || (type === "radio" && !checked)) continue;
    const isBox = type === "checkbox";
    // A dot in the name is a field of an object: allowances.day; names that others chose are in data-key.
    const parts = name.split(".");
    const last = dataset.key || parts.at(-1);
    const place = () => parts.slice(0, -1).reduce((outer, part) => (outer[part] ??= Object.create(null)), body);
    if (dataset.type === "fields") {
      Object.assign(body, JSON.parse(value));
    } else if (dataset.type === "list") {
      const listed = isBox ? [checked && value] : value.split(/[\n,]/).map((part) => part.trim());
      place()[last] = [...(place()[last] ?? []), ...listed.filter(Boolean)];
    } else if (isBox || value || dataset.empty !== undefined || dataset.type) {
      const isNull = !value && (dataset.type || dataset.empty === "null");
      place()[last] = isBox ? checked : isNull ? null : (KINDS[dataset.type] ?? String)(value);
    }
  }
  return body;
}

function clearErrors(form) {
  for (const old of form.querySelectorAll(":not(.preview) > .problem")) old.remove();
  for (const field of form.querySelectorAll("[aria-invalid]")) field.ariaInvalid = null;
}

/** Show an error beside what it is about; without a place, in a toast. */
export function showError(place, error) {
  if (error.status === 401) return leave();
  if (!place?.isConnected) return say(error.message);
  clearErrors(place);
  const field = place.elements?.[error.fields?.[0]];
  const text = make("p", error.message, { className: "problem", role: "alert", id: `problem-${crypto.randomUUID()}` });
  if (field instanceof HTMLElement) {
    field.ariaInvalid = "true";
    field.setAttribute("aria-describedby", text.id);
    field.after(text);
    field.focus();
  } else {
    (place.querySelector(".answers, .form-end") ?? place.lastElementChild ?? place).before(text);
  }
}

// ---- What opens and closes: parts of a page, dialogs, menus ----------------------------------------

on("click", "[data-toggle]", async (toggle) => {
  const target = document.getElementById(toggle.dataset.toggle);
  const opens = toggle.ariaExpanded !== "true";
  toggle.ariaExpanded = String(opens);
  toggle.dataset.toggled = "1";
  target.dataset.opened = "";
  if (opens && target.dataset.load) await loadDetails(target).catch((error) => { target.textContent = error.message; });
  target.hidden = toggle.ariaExpanded !== "true";
  target.elements?.[0].focus();
});

/** Show something as a dialog, until it is closed. */
export function showDialog(...content) {
  const dialog = make("dialog", "", { onclose: () => dialog.remove() }, ...content);
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
export const openDialog = async (path) => showDialog(parse(await fetchPart(path)));

/** Ask in a dialog before something that cannot be undone. */
async function confirm(text, label) {
  // What exactly it is about stands below the question.
  const [question, ...exact] = text.split("\n\n");
  const command = { textContent: exact.join("\n\n"), hidden: !exact.length };
  const dialog = showDialog(copy("confirm", { p: { textContent: question }, ".command": command, ".main": { textContent: label.trim() } }));
  await new Promise((go) => dialog.addEventListener("close", go));
  return dialog.returnValue === "yes";
}

/** Load what a dialog or a popover shows, each time that it opens. */
async function load(box) {
  if (box.dataset.fetch) box.replaceChildren(parse(await fetchPart(box.dataset.fetch)));
}

on("click", "[data-dialog]", async (opener) => {
  opener.closest("[popover]")?.hidePopover();
  const dialog = document.getElementById(opener.dataset.dialog);
  await load(dialog);
  dialog.showModal();
});
on("click", "[data-close]", (button) => button.closest("dialog")?.close());
on("click", "[data-show], [data-keys-sheet], [data-connect]", async (opener) => {
  opener.closest("[popover]")?.hidePopover();
  const { connect, show = "/page/keys" } = opener.dataset;
  if (connect) (await import("./setup.js")).connect(connect);
  else await openDialog(show);
});

// The style sheet puts a menu beside the button that opens it.
document.addEventListener("toggle", async ({ target: menu, newState }) => {
  if (newState !== "open" || !menu.popover) return;
  await load(menu).catch((error) => say(error.message));
  loadModules(menu);
  menu.querySelector("button, a, input")?.focus();
}, true);

// ---- The list: rows that change, search, names ----------------------------------------------------

/** The server gives so many at once. */
const MAX_ROWS = 20;
const changed = new Set();
let timer = null;
let fetchedAt = -REST;
/** Rows have to move, and somebody points at them. */
let waits = false;

const findList = () => document.querySelector("#list");
const findRows = () => [...findList().querySelectorAll(".conversation")];
/** On touch screens what was touched last stays hovered. The focus that a click leaves behind is not seen. */
const isInUse = () => (matchMedia("(hover: hover)").matches && findList()?.matches(":hover")) || findList()?.querySelector(":focus-visible");

/** What the list shows: all, or what was chosen and typed. */
const query = (more) => new URLSearchParams({ state: findList().dataset.state, q: sidebar.querySelector("#search").value.trim(), ...more });

document.addEventListener("changed", ({ detail: { kind, conversation } }) => {
  if (!kind) return refreshList();
  if (!conversation || document.hidden) return;
  changed.add(conversation);
  planRows();
});
// More rows were loaded while all of them were on their way.
document.addEventListener("longer", () => refreshList());

function planRows(wait = Math.max(60, fetchedAt + REST - performance.now())) {
  timer ??= setTimeout(refreshChanged, wait);
}

async function refreshChanged() {
  const ids = [...changed];
  timer = null;
  fetchedAt = performance.now();
  changed.clear();
  if (!findList() || !ids.length) return;
  // A search is done anew.
  if (ids.length > MAX_ROWS || query().get("q")) return void refreshList({ later: isInUse() });
  await refreshRows(ids).catch(() => {
    ids.forEach((id) => changed.add(id));
    planRows(LONG_REST);
  });
}

async function refreshRows(ids) {
  const { state } = findList().dataset;
  const content = parse(await fetchPart(`/page/rows?${query({ ids })}`));
  if (findList().dataset.state !== state) return;
  const moved = [];
  for (const row of content.querySelectorAll(".conversation")) {
    const old = document.getElementById(row.id);
    const moves = old ? old.dataset.group !== row.dataset.group || old.previousElementSibling.dataset.at < row.dataset.at : isAmongShown(row);
    if (moves) moved.push(old ?? row);
    if (old) morph(old, row);
  }
  const gone = ids.map((id) => document.getElementById(`row-${id}`)).filter((row) => row && !content.getElementById(row.id));
  markCurrent();
  if (isInUse()) return void (waits ||= moved.length + gone.length > 0);
  for (const row of gone) row.remove();
  if (!moved.every(place) || findList().querySelector(".group + .group, .group:last-child")) refreshList();
}

/** Whether a row has its place among those that are loaded. */
function isAmongShown(row) {
  const last = findRows().at(-1);
  return !last || !findList().querySelector("[data-more]") || row.dataset.at >= last.dataset.at;
}

/** Put a row where it belongs under its heading; false: the heading is not there. */
function place(row) {
  const others = findRows().filter((one) => one !== row && one.dataset.group === row.dataset.group);
  const next = others.find((one) => one.dataset.at < row.dataset.at);
  if (next) next.before(row);
  else others.at(-1)?.after(row);
  return others.length > 0;
}

/** Load the rows again that are shown, or the first ones; while somebody points at them, later. */
async function refreshList({ rows = document.querySelectorAll("#list .conversation").length, later = false } = {}) {
  if (!findList() || (waits = later)) return;
  findList().dataset.src = `/page/list?${query({ rows })}`;
  await refresh(findList(), true);
}
for (const end of ["mouseout", "focusout"]) {
  sidebar.addEventListener(end, () => waits && setTimeout(() => waits && refreshList({ later: isInUse() })));
}

let typed = null;
let finds = false;

/** Show what was chosen or typed, from the top. */
function find() {
  clearTimeout(typed);
  finds = true;
  sessionStorage.setItem(FILTER, findList().dataset.state);
  return refreshList({ rows: 0 });
}
document.addEventListener("patched", ({ target }) => {
  if (target.id !== "list") return;
  markCurrent();
  if (!finds) return;
  finds = false;
  announce(target.dataset.said);
  target.scrollTop = 0;
});
on("input", "#search", ({ value }) => {
  clearTimeout(typed);
  typed = setTimeout(find, value ? 150 : 0);
});
on("click", "[data-state-filter]", (button) => {
  document.querySelector("#filters").hidePopover();
  if (!button.closest("#filters")) sidebar.querySelector("[popovertarget=filters]").focus();
  findList().dataset.state = button.dataset.stateFilter;
  return find();
});
sidebar.addEventListener("submit", async (event) => {
  event.preventDefault();
  await find();
  findList().querySelector("a")?.click();
});

// The title that the menu belongs to becomes a field.
on("click", "[data-rename]", (button) => {
  button.closest("[popover]").hidePopover();
  const title = button.closest(".conversation, .header").querySelector(".title, h1");
  const holder = title.closest("a") ?? title;
  const known = title.textContent;
  const field = make("input", "", { className: "input", value: known, maxLength: 200, ariaLabel: words.rename });
  holder.hidden = true;
  holder.after(field);
  holder.parentElement.dataset.busy = "";
  field.focus();
  field.select();
  // Once: a field that is removed loses the focus again.
  field.onblur = async () => {
    field.onblur = null;
    field.remove();
    holder.hidden = false;
    delete holder.parentElement.dataset.busy;
    holder.focus();
    const title = field.value.trim();
    if (!title || title === known) return;
    await call("PATCH", `/api/conversations/${button.dataset.rename}`, { title }).then(() => showChange(button), (error) => say(error.message));
  };
  field.onkeydown = (event) => {
    event.stopPropagation();
    if (event.key === "Escape") field.value = known;
    if (/Escape|Enter/.test(event.key)) field.blur();
  };
});

// ---- "About this", previews, and copies ------------------------------------------------------------

const ABOUT = "backburner-about";
const hasRoom = () => innerWidth > 1180;

on("click", "[data-about-toggle]", () => {
  const page = main.querySelector(".chat-page");
  const isOpen = getComputedStyle(page.querySelector(".about")).display !== "none";
  page.dataset.about = isOpen ? "closed" : "open";
  if (hasRoom()) localStorage.setItem(ABOUT, page.dataset.about);
});
onView(".chat-page", (page) => {
  if (localStorage.getItem(ABOUT) === "closed" && hasRoom()) page.dataset.about = "closed";
});

// What is typed is explained beside it; an example fills the field.
on("input", "[data-preview]", async ({ dataset }, { target: field }) => {
  const { value: text, form } = field;
  clearErrors(form);
  await pause(200);
  if (field.value !== text) return;
  const address = `${dataset.preview}?text=${encodeURIComponent(text)}`;
  const content = parse(await fetchPart(address));
  if (field.value !== text) return;
  const place = document.getElementById(form.dataset.into) ?? form.querySelector(".preview");
  // After a change, the same is looked for.
  if (place.dataset.src) place.dataset.src = address;
  patch(place, content);
});
on("click", "[data-fill]", ({ form, dataset }) => {
  const field = form.querySelector("[data-preview]");
  field.value = dataset.fill;
  emit("input", null, field);
  field.focus();
});

on("click", "[data-copy]", async (button) => {
  const source = document.getElementById(button.dataset.copy) ?? button.closest("figure").querySelector("pre");
  await navigator.clipboard.writeText((source.content ?? source).textContent).catch(() => { throw new Error(words.failed); });
  announce(words.copied);
  const label = button.querySelector("span") ?? button;
  const text = label.textContent;
  label.textContent = words.copied;
  await pause(1500);
  label.textContent = text;
});

// ---- Keys --------------------------------------------------------------------------------------

const STEPS = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  const isCommand = event.metaKey || event.ctrlKey;
  if (event.defaultPrevented || event.altKey) return;
  if (isCommand && key === "k") return focusSearch(event);
  if (isCommand || target.matches?.("input, textarea, select, [contenteditable]") || document.querySelector("dialog[open]")) return;
  const near = (selector) => target.closest?.(selector);
  if (near(".question") && /^[1-9]$/.test(key)) near(".question").querySelectorAll(".answers > .button")[key - 1]?.click();
  else if (key === "/") focusSearch(event);
  else if (key === "?") openDialog("/page/keys").catch((error) => say(error.message));
  else if (key === "n") open("/new");
  else if (key.startsWith("Arrow") && near(".week .entry")) moveInWeek(event, near(".week"));
  else if (STEPS[key] && (key.length === 1 || near(".list, .waterfall, [popover]"))) move(event, STEPS[key], near("[popover], #list") ?? main.querySelector("[data-keys]") ?? document.querySelector("#list"));
  else if (target.matches?.(".conversation > a") && (key === "e" || key === "#")) {
    const button = target.parentElement.querySelector(`.menu [data-call*="${key === "e" ? "archive" : "DELETE"}"]`);
    // The focus stays in the list, also after a question.
    const goOn = () => [1, -1].forEach((by) => document.activeElement === target && move(event, by, findList()));
    if (button?.dataset.confirm) button.addEventListener("performed", goOn, { once: true });
    else goOn();
    button?.click();
  }
});

function focusSearch(event) {
  event.preventDefault();
  if (NARROW.matches && shell.dataset.at !== "list") open("/");
  sidebar.querySelector("#search")?.focus();
}

function move(event, by, scope) {
  const stops = findShown(scope, scope.dataset.keys ?? (scope.popover ? ".menu-item" : ".conversation > a"));
  const at = stops.findIndex((stop) => stop.contains(document.activeElement));
  event.preventDefault();
  stops[Math.max(0, Math.min(stops.length - 1, at + by))]?.focus();
}

/** Up and down go through all entries, left and right to the same place of another day. */
function moveInWeek(event, week) {
  const days = findShown(week, ".day:has(.entry)").map((day) => findShown(day, ".entry"));
  const all = days.flat();
  const entry = event.target.closest(".entry");
  const day = days.findIndex((entries) => entries.includes(entry));
  const other = days[day + (event.key === "ArrowRight" ? 1 : -1)];
  const next = STEPS[event.key] ? all[all.indexOf(entry) + STEPS[event.key]] : other?.[Math.min(days[day].indexOf(entry), other.length - 1)];
  event.preventDefault();
  next?.focus();
}
