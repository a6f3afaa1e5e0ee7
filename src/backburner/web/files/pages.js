// Takes the secret out of the address, sends it with the form, and shows the result.
// All content is set as text, so that none of it can become code.

import { KEY, call, make } from "./session.js";

const forms = [...document.querySelectorAll("form")];
const problem = document.querySelector("#problem");
const done = document.querySelector("#done");
let secret = "";

function takeSecret() {
  const taken = location.hash.slice(1);
  if (taken) history.replaceState(null, "", location.pathname);
  return taken;
}

function show(...shown) {
  for (const part of [...forms, done, problem]) part.hidden = !shown.includes(part);
  shown.find((part) => part.matches("form"))?.querySelector("input, button").focus();
}

function showError(error) {
  problem.textContent = error.message;
  problem.hidden = false;
}

/** Run the action of a button, not twice at once, and show its error. */
async function run(button, action) {
  button.disabled = true;
  problem.hidden = true;
  try {
    await action();
  } catch (error) {
    showError(error);
  } finally {
    button.disabled = false;
  }
}

async function send(form) {
  const body = Object.fromEntries([...new FormData(form)].filter(([, value]) => value));
  if (form.dataset.secret) body[form.dataset.secret] = secret;
  try {
    const session = await call("POST", form.dataset.to, body);
    localStorage.setItem(KEY, session.key);
  } catch (error) {
    // A used secret is of no use again; other errors can be corrected in the form.
    if (error.status === 401 && form.dataset.secret) {
      secret = "";
      showForm();
    }
    throw error;
  }
  form.reset();
  secret = "";
  // The zone counts unless the user has set one.
  const found_zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  welcome(await call("PUT", "/api/me", { found_zone }));
}

function welcome(me) {
  const name = me.name || me.login;
  const token = make("button", "Create a token for another terminal", { className: "quiet" });
  const leave = make("button", "Sign out", { className: "quiet" });
  done.replaceChildren(
    make("h1", name ? `You are signed in as ${name}.` : "You are signed in."),
    make("p", "Continue in a terminal on the machine that runs Backburner:"),
    make("pre", 'backburner say "Hello"\nbackburner status'),
    token,
    leave,
  );
  token.addEventListener("click", () => run(token, () => createToken(token)));
  leave.addEventListener("click", () => run(leave, signOut));
  show(done);
}

async function createToken(button) {
  const created = await call("POST", "/api/tokens", { name: "terminal", scopes: ["read", "write"], expires: "90d" });
  button.replaceWith(
    make("p", "This token is shown only once and is valid for 90 days. Save it in a file that only you can read:"),
    make("pre", created.token),
    make("pre", `export BACKBURNER_URL=${location.origin}\nbackburner status --token-file FILE`),
  );
}

async function signOut() {
  await call("POST", "/api/sign-out");
  localStorage.removeItem(KEY);
  location.assign("/sign-in");
}

/** Show the form that matches the link, or the one for visitors without a link. */
function showForm() {
  const [form] = forms.filter((candidate) => Boolean(candidate.dataset.secret) === Boolean(secret));
  if (form) {
    show(form);
  } else {
    show();
    showError(new Error("This link is incomplete: nothing follows the #. Open the whole link."));
  }
}

async function start() {
  secret = takeSecret();
  showForm();
  if (!secret && localStorage.getItem(KEY) && forms.some((form) => !form.dataset.secret)) {
    await call("GET", "/api/me").then(welcome, () => {});
  }
}

for (const form of forms) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run(event.submitter ?? form.querySelector("button"), () => send(form));
  });
}
for (const box of document.querySelectorAll("[data-shows]")) {
  const field = box.form.elements[box.dataset.shows];
  box.addEventListener("change", () => { field.type = box.checked ? "text" : "password"; });
}
// Opening another link in the same tab changes only the hash.
addEventListener("hashchange", start);
start();
