// Shows a conversation (/c/ID) or an open question (/q/ID) to the user who is signed in.
// The page is the same for every id; all content is set as text.

import { KEY, call, make } from "./session.js";

const MESSAGES = 20;
const PAGE = 100;
const NAMES = { user: "You", assistant: "Agent", system: "Backburner" };
const view = document.querySelector("#view");
const problem = document.querySelector("#problem");

function showMessage(message) {
  const block = make("section", "", { className: "message" });
  const at = new Date(message.created_at).toLocaleString();
  block.append(
    make("p", `${NAMES[message.role] ?? message.role}, ${at}`, { className: "aside" }),
    make("p", message.content, { className: "text" }),
  );
  return block;
}

async function showConversation(id) {
  const path = `/api/conversations/${encodeURIComponent(id)}`;
  const [conversation, messages] = await Promise.all([
    call("GET", path),
    call("GET", `${path}/messages?limit=${MESSAGES}`),
  ]);
  const title = conversation.title || "Conversation";
  document.title = title;
  const shown = messages.items.reverse().map(showMessage);
  view.replaceChildren(
    make("h1", title),
    ...(messages.next ? [make("p", `The last ${MESSAGES} messages.`, { className: "aside" })] : []),
    ...(shown.length ? shown : [make("p", "There are no messages yet.")]),
    make("p", "Reply in a terminal:", { className: "aside" }),
    make("pre", `backburner say --in ${conversation.id} "TEXT"`),
  );
}

async function findQuestion(id) {
  let cursor = "";
  do {
    const page = await call("GET", `/api/questions?limit=${PAGE}${cursor}`);
    const found = page.items.find((question) => question.id === id);
    if (found) return found;
    cursor = page.next ? `&cursor=${encodeURIComponent(page.next)}` : "";
  } while (cursor);
  throw new Error("This question is not open: it was answered or withdrawn, or it is not yours.");
}

async function showQuestion(id) {
  const question = await findQuestion(id);
  const title = question.title || "Question";
  document.title = title;
  const options = make("ul", "");
  options.append(...question.options.map((option) => make("li", option)));
  const place = make("p", "");
  place.append(make("a", "Open the conversation", { href: `/c/${question.conversation_id}` }));
  view.replaceChildren(
    make("h1", title),
    make("p", question.prompt, { className: "text" }),
    ...(question.options.length ? [options] : []),
    make("p", "Answer in a terminal:", { className: "aside" }),
    make("pre", `backburner answer ${question.id} TEXT`),
    place,
  );
}

function askToSignIn() {
  const link = make("p", "");
  link.append(make("a", "Sign in", { href: "/sign-in" }), " and open this page again.");
  view.replaceChildren(make("h1", "You are not signed in."), link);
}

async function start() {
  const [, kind, id] = location.pathname.split("/");
  if (!localStorage.getItem(KEY)) return askToSignIn();
  try {
    await (kind === "q" ? showQuestion : showConversation)(decodeURIComponent(id));
  } catch (error) {
    if (error.status === 401) return askToSignIn();
    view.replaceChildren();
    problem.textContent = error.message;
    problem.hidden = false;
  }
}

start();
