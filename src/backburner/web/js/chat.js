// A conversation: its messages and files, a reply as it is written, and where one writes.

import { showDialog, showError } from "./controls.js";
import { announce, askForDrafts, copy, main, on, onView, open, parse, patch, reopen, say, words } from "./page.js";
import { call, callOnce, fetchFile, fetchPart, make, upload } from "./server.js";

onView("[data-chat]", (page) => {
  const ending = new AbortController();
  const thread = page.querySelector(".scroller") && startThread(page, ending);
  startComposer(page, page.querySelector(".composer"), ending, thread);
  return () => ending.abort();
});

// ---- Messages ----------------------------------------------------------------------------------

/** So close to the end, in pixels, what comes is followed. */
const NEAR = 80;
/** More items than this are not fetched again with what is new. */
const KEPT = 150;
const PROGRESS_INTERVAL = 1500;

function startThread(page, { signal }) {
  const id = page.dataset.chat;
  const [scroller, tail, draft, below, halt] = [".scroller", "#tail", "#draft", "#below", ".halt"].map((part) => page.querySelector(part));
  /** The run whose reply is shown as it is written. */
  let run = null;
  let unread = 0;

  const isAtEnd = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR;
  const toEnd = () => { scroller.scrollTop = scroller.scrollHeight; };

  function keepPlace(change) {
    const follows = isAtEnd();
    change();
    if (follows) toEnd();
    showBelow();
  }

  function showBelow() {
    below.hidden = isAtEnd();
    if (below.hidden) unread = 0;
    below.querySelector("span").textContent = unread ? words.new_below.replace("{number}", unread) : below.dataset.label;
  }
  scroller.onscroll = showBelow;
  below.onclick = () => { toEnd(); page.querySelector("#composer").focus(); };

  let wanted = false;
  let refreshing = null;

  function refreshTail() {
    wanted = true;
    // A chat that nobody sees is looked at again when somebody does.
    if (document.hidden) return;
    return (refreshing ??= showChanges().finally(() => {
      refreshing = null;
      lookAgain();
    }));
  }

  async function showChanges() {
    while (wanted && page.isConnected) {
      wanted = false;
      const content = await fetchPart(nameTail()).then(parse, ({ status }) => {
        // It is gone, which the page says, unless it is being left.
        if (status === 404 && !main.ariaBusy) reopen();
      });
      if (!page.isConnected) return;
      if (!content) return void setTimeout(refreshTail, 2 * PROGRESS_INTERVAL);
      const news = [...content.children].filter((item) => item.id && !document.getElementById(item.id));
      const told = news.filter((item) => item.matches(".message.theirs, .background, .question"));
      const isWriting = content.querySelector("[data-writing]")?.dataset.writing ?? null;
      if (told.length) {
        if (!isAtEnd()) unread += told.length;
        announce(told.map((item) => item.dataset.said ?? (item.querySelector(".body") ?? item).textContent.trim().slice(0, 400)).join(" "));
      }
      keepPlace(() => {
        patch(tail, content);
        // What was shown while it was sent is there now.
        const sent = news.filter((item) => item.matches(".message.yours")).length;
        for (const bubble of [...page.querySelectorAll(".sending")].slice(0, sent)) bubble.remove();
        if (isWriting !== run) clearDraft();
        if (isWriting && !run) askForDrafts();
      });
      halt.hidden = !isWriting;
      if (!document.hidden && news.length) markSeen();
    }
  }

  function clearDraft() {
    draft.replaceChildren();
    draft.ariaBusy = null;
    run = null;
  }

  // No event says that a tool was called: what is in progress is looked at again.
  let looking;
  function lookAgain() {
    clearTimeout(looking);
    if (page.isConnected && tail.querySelector("[data-writing], .background.working")) {
      looking = setTimeout(refreshTail, PROGRESS_INTERVAL);
    }
  }

  /** The address of all from the first item of the tail on; what is far above it stays as it is. */
  function nameTail() {
    while (tail.children.length > KEPT) {
      tail.before(make("div", "", { className: "items" }, ...[...tail.children].slice(0, KEPT / 2)));
    }
    const first = tail.querySelector("[data-key]")?.dataset.key;
    return `/page/c/${id}/tail?count=${tail.children.length}${first ? `&since=${encodeURIComponent(first)}` : ""}`;
  }

  let marking;
  /** Once for what comes together. */
  function markSeen() {
    clearTimeout(marking);
    if (!document.hidden) marking = setTimeout(() => call("POST", `/api/conversations/${id}/seen`).catch(() => {}), 200);
  }

  document.addEventListener("changed", ({ detail }) => {
    if (detail.conversation === id || !detail.kind) refreshTail();
  }, { signal });
  document.addEventListener("visibilitychange", () => {
    markSeen();
    if (wanted) refreshTail();
  }, { signal });

  // Older messages, before the reader reaches the top; what is far away is dropped with its height kept.
  const older = new IntersectionObserver(async (entries) => {
    for (const { target, isIntersecting } of entries) {
      const { older: address, loading } = target.dataset;
      if (!isIntersecting || loading) continue;
      target.dataset.loading = "1";
      const content = await fetchPart(address).then(parse, () => null);
      delete target.dataset.loading;
      if (!content) continue;
      content.querySelector(".items").dataset.part = address;
      const { scrollHeight, scrollTop } = scroller;
      target.replaceWith(content);
      scroller.scrollTop = scrollTop + scroller.scrollHeight - scrollHeight;
      observe();
    }
  }, { root: scroller, rootMargin: "1200px 0px" });
  const far = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting, boundingClientRect: { height } } of entries) {
      if (isIntersecting) {
        bringBack(target);
      } else if (target.firstChild && height) {
        target.style.blockSize = `${height}px`;
        // What has an address is not kept.
        if (!target.dataset.part) target.kept = [...target.childNodes];
        target.replaceChildren();
        target.classList.add("far");
      }
    }
  }, { root: scroller, rootMargin: "3000px 0px" });
  async function bringBack(part) {
    if (!part.classList.contains("far") || part.dataset.loading) return;
    part.dataset.loading = "1";
    const content = part.kept ?? await fetchPart(part.dataset.part).then((html) => parse(html).querySelector(".items").childNodes, () => null);
    delete part.dataset.loading;
    if (!content) return void setTimeout(() => { far.unobserve(part); far.observe(part); }, 2000);
    part.replaceChildren(...content);
    part.kept = null;
    part.style.blockSize = "";
    part.classList.remove("far");
  }
  function observe() {
    for (const end of page.querySelectorAll("[data-older]")) older.observe(end);
    for (const part of page.querySelectorAll(".items:not(#tail)")) far.observe(part);
  }
  signal.onabort = () => {
    older.disconnect();
    far.disconnect();
  };

  document.addEventListener("draft", ({ detail }) => {
    const { again, blocks, conversation, fresh, open: last } = detail;
    // The messages say what is being written: a piece may come before they do, and after the reply.
    if (conversation !== id || !tail.querySelector(`[data-writing="${CSS.escape(detail.run)}"]`)) return;
    // What is sent again is for tabs that lack it; one that lacks the beginning asks for all of it.
    if (run === detail.run && again) return;
    if (run !== detail.run && !fresh) return askForDrafts();
    keepPlace(() => {
      if (fresh) draft.replaceChildren(copy("reply"));
      run = detail.run;
      draft.ariaBusy = "true";
      const body = draft.querySelector(".body");
      if (blocks.length) body.querySelector(".open-block")?.remove();
      body.append(...blocks.map(parse));
      if (!body.querySelector(".open-block")) body.append(copy("open-block"));
      const text = body.querySelector(".open-block span");
      text.textContent = text.textContent.slice(0, last.at) + last.text;
    });
    halt.hidden = false;
  }, { signal });

  if (tail.querySelector("[data-writing]")) askForDrafts();
  toEnd();
  requestAnimationFrame(() => { toEnd(); observe(); showBelow(); });
  if (page.dataset.unseen) markSeen();
  lookAgain();
  return { refreshTail, toEnd };
}

// ---- The composer ------------------------------------------------------------------------------

/** Without a keyboard, Enter is the one key for a new line. */
const isTouch = matchMedia("(hover: none) and (pointer: coarse)").matches;

function startComposer(page, form, { signal }, thread) {
  const id = page.dataset.chat;
  const key = `backburner-text:${id || "new"}`;
  /** Its files, or all of an edit. */
  const moreKey = `${key}+`;
  const messages = `/api/conversations/${id}/messages`;
  const composer = form.querySelector("textarea");
  const [send, halt, picker] = [".send", ".halt", "[type=file]"].map((part) => form.querySelector(part));
  let files = [];
  /** The message that is edited, and what was being written before. */
  let editing = null;
  let isBeginning = false;

  const allow = () => { send.disabled = !composer.value.trim() && !files.length; };
  function store() {
    allow();
    const text = composer.value;
    const more = (editing || files.length) && JSON.stringify({ text, files, editing });
    try {
      for (const [place, kept] of [[key, editing ? editing.text : text], [moreKey, more]]) {
        if (kept) localStorage.setItem(place, kept);
        else localStorage.removeItem(place);
      }
    } catch {
      // There is no room for it: it stays in the field only.
    }
  }
  function write(text, kept = []) {
    composer.value = text;
    files = kept;
    drawFiles();
  }
  composer.oninput = () => {
    store();
    // A slash alone chooses nothing.
    chosen = composer.value.length > 1 ? 0 : -1;
    showCommands();
  };
  // The same conversation may be open in another tab.
  addEventListener("storage", (event) => {
    if (event.key !== key || editing || document.activeElement === composer) return;
    composer.value = event.newValue;
    allow();
  }, { signal });

  const join = (before, after) => `${before}\n\n${after}`.trim();
  const name = (kept) => kept.map(({ digest, name }) => ({ digest, name }));

  /** Send what is written, or what an example says. */
  async function submit(example) {
    const text = example ?? composer.value.trim();
    const kept = files;
    // One message begins one conversation.
    if (isBeginning || (!text && !kept.length) || kept.some((file) => !file.digest)) return;
    if (text.startsWith("/") && runCommand(text)) return;
    form.querySelector(".problem")?.remove();
    const left = kept.length - form.dataset.maxFiles;
    if (left > 0) return showError(form, Error(form.dataset.tooMany.replace("{number}", left)));
    const content = text || kept.map((file) => file.name).join(", ");
    const asked = form.querySelector("#asked")?.dataset;
    const more = { attachments: name(kept), answers: asked?.answers };
    const bubble = copy("sending", { ".body": { textContent: content } });
    page.querySelector("#draft")?.before(bubble);
    thread?.toEnd();
    isBeginning = !id;
    if (!example) write("");
    try {
      if (!id) return await open(`/c/${(await callOnce("POST", "/api/conversations", { message: content, ...more })).id}`);
      await (editing ? call("PUT", `${messages}/last`, { content, ...more, replaces: editing.id }) : callOnce("POST", messages, { content, ...more }));
      if (asked) delete asked.answers;
      stopEditing(composer.value);
      await thread.refreshTail();
    } catch (error) {
      isBeginning = false;
      // Nothing that was typed is lost, before or since.
      if (!example) write(join(text, composer.value), [...kept, ...files]);
      showError(form, error);
    } finally {
      bubble.remove();
    }
  }

  form.onsubmit = (event) => {
    event.preventDefault();
    submit();
  };
  page.onclick = ({ target }) => {
    const { say: text, edit } = target.closest("[data-say], [data-edit]")?.dataset ?? {};
    if (text) submit(text);
    if (!edit) return;
    if (edit === "end") stopEditing();
    else startEditing();
    // To try again is to send the last message once more.
    if (edit === "again" && editing) submit();
    else composer.focus();
  };

  composer.onkeydown = (event) => {
    if (event.isComposing) return;
    if (moveInCommands(event)) event.preventDefault();
    else if (event.key === "Enter" && !event.shiftKey && !event.altKey && !isTouch) {
      event.preventDefault();
      submit();
    } else if (event.key === "ArrowUp" && !composer.value) {
      event.preventDefault();
      startEditing();
    } else if (event.key === "Escape") {
      if (editing) stopEditing();
      else if (!halt.hidden) halt.click();
      else composer.blur();
    }
  };

  // ---- Edit and try again
  function findLast() {
    const last = [...page.querySelectorAll(".message.yours[data-source]")].at(-1);
    const attached = [...(last?.querySelectorAll("[data-file]") ?? [])];
    return last && { id: last.id.slice(2), text: last.dataset.source, files: attached.map(({ dataset: { file, name, size } }) => ({ digest: file, name, size })) };
  }
  function startEditing({ id, text, files: attached } = findLast() ?? {}) {
    if (!id || editing) return;
    editing = { id, text: composer.value, files };
    write(text, attached);
    form.classList.add("editing");
  }
  function stopEditing(typed = "") {
    if (!editing) return;
    const { text, files: before } = editing;
    editing = null;
    form.classList.remove("editing");
    write(join(text, typed), [...before, ...(typed && files)]);
  }

  // ---- Files: one after the other, because the server takes only a few of a user at a time
  let uploads = Promise.resolve();
  function attach(chosen) {
    for (const file of chosen) {
      const src = file.type.startsWith("image/") && URL.createObjectURL(file);
      // As a function, the picture is not kept with a draft.
      const entry = { name: file.name, size: file.size, draw: src && (() => make("img", "", { src, alt: "" })) };
      files.push(entry);
      uploads = uploads.then(() => upload(`/api/files?name=${encodeURIComponent(entry.name)}`, file)).then(
        ({ digest, name }) => Object.assign(entry, { digest, name }),
        (error) => {
          remove(entry);
          say(error.message);
        },
      ).finally(() => form.isConnected && drawFiles());
    }
    drawFiles();
  }
  function remove(entry) {
    files = files.filter((other) => other !== entry);
    drawFiles();
  }
  function drawFiles() {
    form.querySelector(".files").replaceChildren(...files.map((file) => {
      const { name, size, digest, draw } = file;
      const item = copy("attached", {
        ".thumb": { textContent: /\.(\w{1,4})$/.exec(name)?.[1] ?? "" },
        bdi: { textContent: name, title: name },
        ".size": { textContent: `${Math.ceil(size / 1000)} KB` },
        button: { ariaLabel: `${form.dataset.remove} ${name}`, onclick: () => { remove(file); composer.focus(); } },
      });
      if (draw) item.querySelector(".thumb").replaceWith(draw());
      if (!digest) item.ariaBusy = "true";
      return item;
    }));
    store();
  }
  form.querySelector("[data-attach]").onclick = () => picker.click();
  picker.onchange = () => { attach(picker.files); picker.value = ""; };
  // Beside the field, the browser would open a file in place of the page.
  for (const kind of ["paste", "dragover", "dragleave", "drop"]) {
    addEventListener(kind, (event) => {
      const { files: given, types } = event.dataTransfer ?? event.clipboardData;
      // Spreadsheets give a picture of a text, too.
      if (!types.includes("Files") || (kind === "paste" && types.includes("text/plain"))) return;
      event.preventDefault();
      form.classList.toggle("drop", kind === "dragover" || (kind === "dragleave" && !!event.relatedTarget));
      if (!kind.startsWith("drag")) attach(given);
    }, { signal });
  }

  // ---- Commands: the server lists them, those that begin with what is typed are shown
  const box = page.querySelector("#commands");
  const known = () => [...page.querySelector("#known-commands").children];
  let chosen = -1;

  function showCommands() {
    const found = known().filter(({ dataset }) => composer.value && dataset.name.startsWith(composer.value));
    box.replaceChildren(...found.map((one, at) => Object.assign(one.cloneNode(true), { id: one.dataset.name, ariaSelected: String(at === chosen) })));
    box.hidden = !found.length;
    box.children[chosen]?.scrollIntoView({ block: "nearest" });
    composer.setAttribute("aria-activedescendant", found[chosen]?.dataset.name ?? "");
  }
  function moveInCommands({ key: pressed }) {
    const found = box.children;
    const by = { ArrowDown: 1, ArrowUp: -1 }[pressed];
    if (box.hidden) return false;
    if (by) {
      // One turn goes through none of them.
      chosen = ((chosen + by + found.length + 2) % (found.length + 1)) - 1;
      showCommands();
    } else if (pressed === "Escape") box.hidden = true;
    else if (pressed === "Enter" || (pressed === "Tab" && found[chosen])) runCommand(found[chosen]?.dataset.name);
    else return false;
    return true;
  }
  /** Press its button or link; a command that takes a text waits for it. */
  function runCommand(text = "") {
    const [name, ...rest] = text.split(" ");
    const command = known().find((one) => one.dataset.name === name);
    if (!command) return false;
    const { press, takes } = command.dataset;
    const waits = takes && !rest.length;
    write(waits ? `${name} ` : "", files);
    box.hidden = true;
    if (takes) command.dataset.body = JSON.stringify({ [takes]: rest.join(" ") });
    if (!waits) (press ? document.querySelector(press) : command).click();
    return true;
  }
  box.onmousedown = (event) => {
    event.preventDefault();
    runCommand(event.target.closest("[role=option]")?.dataset.name);
  };

  // Somebody may have begun to write before this ran.
  const { text, files: attached = [], editing: before } = JSON.parse(localStorage.getItem(moreKey)) ?? {};
  const uploaded = (listed) => listed.filter((file) => file.digest);
  write(composer.value || localStorage.getItem(key), uploaded(before?.files ?? attached));
  if (before && before.id === findLast()?.id) startEditing({ id: before.id, text, files: uploaded(attached) });
  if (!isTouch) composer.focus({ preventScroll: true });
}

// ---- Files of messages: small pictures of images, a look at one, and downloads ---------------------

const MAX_PREVIEW = 5_000_000;
/** Of our own types, which are all raster images; by digest, so that none is fetched twice. */
const pictures = new Map();

function loadPicture(digest) {
  if (!pictures.has(digest)) {
    pictures.set(digest, fetchFile(digest).then((blob) => URL.createObjectURL(blob)));
    pictures.get(digest).catch(() => pictures.delete(digest));
  }
  return pictures.get(digest);
}

const near = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    loadPicture(target.dataset.file).then((src) => target.querySelector(".thumb")?.replaceWith(make("img", "", { src, alt: "" })), () => {});
  }
});

function watch() {
  for (const file of document.querySelectorAll("[data-image='1']:not([data-watched])")) {
    file.dataset.watched = "";
    if (file.dataset.size <= MAX_PREVIEW) near.observe(file);
  }
}
document.addEventListener("patched", watch);

on("click", "[data-file]", async ({ dataset: { file: digest, name, image } }) => {
  if (image) {
    const src = await loadPicture(digest);
    const shown = copy("preview", { bdi: { textContent: name }, a: { href: src, download: name }, img: { src, alt: name } });
    showDialog(shown).className = "file-preview";
    return;
  }
  const href = URL.createObjectURL(await fetchFile(digest));
  make("a", "", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
});
