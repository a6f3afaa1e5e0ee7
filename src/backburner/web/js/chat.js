// A conversation: its messages and files, a reply as it is written, and where one writes.

import { openDialog, showDialog, showError } from "./controls.js";
import { announce, askForDrafts, copy, on, onView, open, parse, patch, say, tell, words } from "./page.js";
import { call, callOnce, fetchFile, fetchPart, make, upload } from "./server.js";

onView("[data-chat]", (page) => {
  const ending = new AbortController();
  const thread = page.querySelector(".scroller") && startThread(page, ending);
  const form = page.querySelector("form.composer");
  if (form) startComposer(page, form, ending, thread);
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
  below.onclick = () => { toEnd(); page.querySelector("#composer")?.focus(); };

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
      const content = await fetchPart(nameTail()).then(parse, () => null);
      if (!page.isConnected) return;
      if (!content) return void setTimeout(refreshTail, 2 * PROGRESS_INTERVAL);
      const known = new Set([...tail.children].map((item) => item.id));
      const news = [...content.children].filter((item) => item.id && !known.has(item.id));
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
      if (halt) halt.hidden = !isWriting;
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
      looking = setTimeout(() => (document.hidden ? lookAgain() : refreshTail()), PROGRESS_INTERVAL);
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

  let seen = 0;
  function markSeen() {
    if (document.hidden || Date.now() - seen < 500) return;
    seen = Date.now();
    call("POST", `/api/conversations/${id}/seen`).catch(() => {});
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
        if (!target.dataset.part) (target.kept = document.createDocumentFragment()).append(...target.childNodes);
        target.replaceChildren();
        target.classList.add("far");
      }
    }
  }, { root: scroller, rootMargin: "3000px 0px" });
  async function bringBack(part) {
    if (!part.classList.contains("far") || part.dataset.loading) return;
    part.dataset.loading = "1";
    const content = part.kept ?? await fetchPart(part.dataset.part).then((html) => parse(html).querySelector(".items"), () => null);
    delete part.dataset.loading;
    if (!content) return void setTimeout(() => { far.unobserve(part); far.observe(part); }, 2000);
    part.replaceChildren(...content.childNodes);
    part.kept = null;
    part.style.blockSize = "";
    part.classList.remove("far");
  }
  function observe() {
    for (const end of page.querySelectorAll("[data-older]:not([data-loading])")) older.observe(end);
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
    if (halt) halt.hidden = false;
  }, { signal });

  if (tail.querySelector("[data-writing]")) askForDrafts();
  toEnd();
  requestAnimationFrame(() => { toEnd(); observe(); showBelow(); });
  if (page.dataset.unseen !== undefined) markSeen();
  lookAgain();
  return { refreshTail, toEnd };
}

// ---- The composer ------------------------------------------------------------------------------

function startComposer(page, form, { signal }, thread) {
  const id = page.dataset.chat;
  const key = `backburner-text:${id || "new"}`;
  const composer = form.querySelector("textarea");
  const send = form.querySelector(".send");
  const halt = form.querySelector(".halt");
  let files = [];
  /** The message that is edited, and what was being written before. */
  let editing = null;
  let isBeginning = false;

  const allow = () => { send.disabled = !composer.value.trim() && !files.length; };
  function store() {
    allow();
    if (editing) return;
    try {
      if (composer.value) localStorage.setItem(key, composer.value);
      else localStorage.removeItem(key);
    } catch {
      // There is no room for it: it stays in the field only.
    }
  }
  function write(text, kept = []) {
    composer.value = text;
    files = kept;
    drawFiles();
    store();
  }
  composer.oninput = () => {
    store();
    showCommands();
  };
  // The same conversation may be open in another tab.
  addEventListener("storage", (event) => {
    if (event.key !== key || editing || document.activeElement === composer) return;
    composer.value = event.newValue ?? "";
    allow();
  }, { signal });

  const join = (...texts) => texts.filter(Boolean).join("\n\n");
  const name = (kept) => kept.map(({ digest, name }) => ({ digest, name }));

  /** Send what is written, or what an example says. */
  async function submit(example) {
    const text = example ?? composer.value.trim();
    const kept = files;
    // One message begins one conversation.
    if (isBeginning || (!text && !kept.length) || kept.some((file) => file.loading)) return;
    if (text.startsWith("/") && runCommand(text)) return;
    const content = text || kept.map((file) => file.name).join(", ");
    const asked = form.querySelector("#asked")?.dataset;
    const more = { ...(kept.length && { attachments: name(kept) }), answers: asked?.answers };
    const bubble = copy("sending", { ".body": { textContent: content } });
    page.querySelector("#draft")?.before(bubble);
    thread?.toEnd();
    isBeginning = !id;
    if (!example) write("");
    try {
      if (!id) return await open(`/c/${(await callOnce("POST", "/api/conversations", { message: content, ...more })).id}`);
      const messages = `/api/conversations/${id}/messages`;
      await (editing ? call("PUT", `${messages}/last`, { content, ...more, replaces: editing.id }) : callOnce("POST", messages, { content, ...more }));
      if (asked) delete asked.answers;
      stopEditing(composer.value);
      await thread.refreshTail();
      bubble.remove();
    } catch (error) {
      bubble.remove();
      isBeginning = false;
      // Nothing that was typed is lost, before or since.
      if (!example) write(join(text, composer.value), [...kept, ...files]);
      document.querySelector("#alarm").textContent = words.not_sent;
      showError(form, error);
    }
  }

  form.onsubmit = (event) => {
    event.preventDefault();
    submit();
  };
  page.onclick = ({ target }) => {
    const button = target.closest("[data-say], [data-edit], [data-edit-ends], [data-again]");
    const { say: text, edit, editEnds, again: isAgain } = button?.dataset ?? {};
    if (text) submit(text);
    if (edit !== undefined) startEditing();
    if (editEnds !== undefined) {
      stopEditing();
      composer.focus();
    }
    if (isAgain !== undefined) again(button);
  };

  composer.onkeydown = (event) => {
    if (event.isComposing) return;
    if (moveInCommands(event)) event.preventDefault();
    else if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      submit();
    } else if (event.key === "ArrowUp" && !composer.value) {
      event.preventDefault();
      startEditing();
    } else if (event.key === "Escape") {
      if (editing) stopEditing();
      else if (halt?.hidden === false) halt.click();
      else composer.blur();
    }
  };
  const ask = (method, path, body) => call(method, `/api/conversations/${id}/${path}`, body).then(thread.refreshTail, (error) => say(error.message));
  if (halt) halt.onclick = () => ask("POST", "stop");

  // ---- Edit and try again
  function findLast() {
    const last = [...page.querySelectorAll(".message.yours[data-source]")].at(-1);
    const attached = [...(last?.querySelectorAll("[data-file]") ?? [])];
    return last && { id: last.id.slice(2), text: last.dataset.source, files: attached.map(({ dataset: { file, name, size } }) => ({ digest: file, name, size: +size })) };
  }
  function startEditing() {
    const last = findLast();
    if (!last || editing) return;
    editing = { id: last.id, text: composer.value, files };
    write(last.text, last.files);
    form.classList.add("editing");
    composer.focus();
  }
  function stopEditing(typed = "") {
    if (!editing) return;
    const { text, files: before } = editing;
    editing = null;
    form.classList.remove("editing");
    write(join(text, typed), [...before, ...(typed && files)]);
  }
  async function again(button) {
    const last = findLast();
    button.disabled = true;
    await ask("PUT", "messages/last", { content: last.text, attachments: name(last.files), replaces: last.id });
    button.disabled = false;
  }

  // ---- Files: one after the other, because the server takes only a few of a user at a time
  let uploads = Promise.resolve();
  function attach(chosen) {
    for (const file of chosen) {
      const isImage = file.type.startsWith("image/") && file.type !== "image/svg+xml";
      const entry = { name: file.name || "image.png", size: file.size, loading: true, preview: isImage && URL.createObjectURL(file) };
      files.push(entry);
      uploads = uploads.then(() => upload(`/api/files?name=${encodeURIComponent(entry.name)}`, file)).then(
        ({ digest, name }) => Object.assign(entry, { digest, name, loading: false }),
        (error) => {
          remove(entry);
          say(error.message);
        },
      ).finally(drawFiles);
    }
    drawFiles();
  }
  function remove(entry) {
    files = files.filter((other) => other !== entry);
    drawFiles();
  }
  function drawFiles() {
    form.querySelector(".files").replaceChildren(...files.map((file) => {
      const { name, size, preview, loading } = file;
      const item = copy("attached", {
        ".thumb": { textContent: /\.(\w{1,4})$/.exec(name)?.[1] ?? "" },
        bdi: { textContent: name, title: name },
        ".size": { textContent: `${Math.max(1, Math.round(size / 1000))} KB` },
        button: { ariaLabel: `${form.dataset.remove} ${name}`, onclick: () => { remove(file); composer.focus(); } },
      });
      if (preview) item.querySelector(".thumb").replaceWith(make("img", "", { src: preview, alt: "" }));
      if (loading) item.ariaBusy = "true";
      return item;
    }));
    allow();
  }
  const picker = form.querySelector("input[type=file]");
  form.querySelector("[data-attach]").onclick = () => picker.click();
  picker.onchange = () => { attach(picker.files); picker.value = ""; };
  const take = (event, { files: given }) => {
    if (!given.length) return;
    event.preventDefault();
    attach(given);
  };
  function showDrop(isOver) {
    form.classList.toggle("drop", isOver);
    composer.placeholder = isOver ? words.drop : composer.ariaLabel;
  }
  composer.onpaste = (event) => take(event, event.clipboardData);
  page.ondragover = (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    showDrop(true);
  };
  page.ondragleave = () => showDrop(false);
  page.ondrop = (event) => {
    event.preventDefault();
    showDrop(false);
    attach(event.dataTransfer.files);
  };

  // ---- Commands: the server lists them, those that begin with what is typed are shown
  const box = page.querySelector("#commands");
  const known = () => [...(page.querySelector("#known-commands")?.children ?? [])];
  let chosen = 0;

  const matching = () => known().filter(({ dataset }) => /^\/\w*$/.test(composer.value) && dataset.name.startsWith(composer.value));

  function showCommands() {
    const found = matching();
    chosen = Math.max(0, Math.min(chosen, found.length - 1));
    if (!box) return;
    box.replaceChildren(...found.map((one, at) => Object.assign(one.cloneNode(true), { id: one.dataset.name, ariaSelected: String(at === chosen) })));
    box.hidden = !found.length;
    composer.setAttribute("aria-activedescendant", found[chosen]?.dataset.name ?? "");
  }
  function moveInCommands({ key: pressed }) {
    const found = matching();
    const by = { ArrowDown: 1, ArrowUp: -1 }[pressed];
    if (!found.length || box.hidden) return false;
    if (by) chosen = (chosen + by + found.length) % found.length;
    if (by) showCommands();
    else if (pressed === "Tab" || pressed === "Enter") choose(found[chosen]);
    else if (pressed === "Escape") box.hidden = true;
    else return false;
    return true;
  }
  /** One that takes a text waits for it. */
  function choose({ dataset }) {
    const { name } = dataset;
    if (!dataset.takes) return runCommand(name);
    write(`${name} `, files);
    box.hidden = true;
    composer.focus();
  }
  function runCommand(text) {
    const [name, ...rest] = text.split(" ");
    const { go, show, press, asks, takes } = known().find((one) => one.dataset.name === name)?.dataset ?? {};
    if (!go && !show && !press && !asks) return false;
    write("");
    box.hidden = true;
    if (go) open(go);
    else if (show) openDialog(show).catch((error) => say(error.message));
    else if (press) document.querySelector(press)?.click();
    else call(...asks.split(" "), takes && { [takes]: rest.join(" ") }).then(() => tell({}), (error) => showError(form, error));
    return true;
  }
  if (box) box.onmousedown = (event) => {
    event.preventDefault();
    choose(event.target.closest("[role=option]"));
  };

  // Somebody may have begun to write before this ran.
  write(composer.value || (localStorage.getItem(key) ?? ""));
  if (matchMedia("(pointer: fine)").matches) composer.focus({ preventScroll: true });
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
