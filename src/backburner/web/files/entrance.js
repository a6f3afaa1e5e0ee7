// The pages behind links: takes the secret out of the address, sends it when somebody says so, and
// tells what came of it. Whatever is shown is set as text, so that none of it is ever code.

const forms = [...document.querySelectorAll("form")];
const problem = document.querySelector("#problem");
const done = document.querySelector("#done");
let secret = "";

function takeSecret() {
  const found = location.hash.slice(1);
  if (found) history.replaceState(null, "", location.pathname);
  return found;
}

class Refused extends Error {
  constructor(status, said) {
    const wrong = (said?.errors ?? []).map((one) => `${one.where.split(".").pop()}: ${one.what}.`);
    const words = [said?.detail, said?.hint, ...wrong].filter(Boolean).join(" ");
    super(words || `The server answered ${status}.`);
    this.status = status;
  }
}

async function ask(method, path, body) {
  // In its usual mode: in any other the browser would not say that it was this page that asked.
  const request = { method, headers: { "content-type": "application/json" }, body: body && JSON.stringify(body) };
  const answer = await fetch(path, request).catch(() => {
    throw new Error("Backburner does not answer. See whether it runs, and try again.");
  });
  const said = await answer.json().catch(() => null);
  if (!answer.ok) throw new Refused(answer.status, said);
  return said;
}

function show(...shown) {
  for (const part of [...forms, done, problem]) part.hidden = !shown.includes(part);
  shown.find((part) => part.matches("form"))?.querySelector("input, button").focus();
}

function complain(error) {
  problem.textContent = error.message;
  problem.hidden = false;
}

function make(tag, words, also = {}) {
  return Object.assign(document.createElement(tag), { textContent: words, ...also });
}

/** Do something when a button is pressed, once at a time, and say what is wrong with it. */
async function pressed(button, work) {
  button.disabled = true;
  problem.hidden = true;
  try {
    await work();
  } catch (error) {
    complain(error);
  } finally {
    button.disabled = false;
  }
}

async function send(form) {
  const body = Object.fromEntries([...new FormData(form)].filter(([, value]) => value));
  if (form.dataset.secret) body[form.dataset.secret] = secret;
  try {
    await ask("POST", form.dataset.to, body);
  } catch (error) {
    // What is used up helps nobody a second time; what is only wrong can be put right.
    if (error.status === 401 && form.dataset.secret) {
      secret = "";
      begin();
    }
    throw error;
  }
  form.reset();
  secret = "";
  welcome(await ask("GET", "/api/me"));
}

function welcome(me) {
  const name = me.name || me.login;
  const token = make("button", "Make a token for a terminal elsewhere", { className: "quiet" });
  const leave = make("button", "Sign out", { className: "quiet" });
  done.replaceChildren(
    make("h1", name ? `You are signed in as ${name}.` : "You are signed in."),
    make("p", "Go on in a terminal on the machine it runs on:"),
    make("pre", 'backburner say "Hello"\nbackburner status'),
    token,
    leave,
  );
  token.addEventListener("click", () => pressed(token, () => giveToken(token)));
  leave.addEventListener("click", () => pressed(leave, signOut));
  show(done);
}

async function giveToken(button) {
  const made = await ask("POST", "/api/tokens", { name: "terminal", scopes: ["read", "write"], expires: "90d" });
  button.replaceWith(
    make("p", "It is shown this once, and good for 90 days. Keep it in a file that only you can read:"),
    make("pre", made.token),
    make("pre", `export BACKBURNER_URL=${location.origin}\nbackburner status --token-file FILE`),
  );
}

async function signOut() {
  await ask("POST", "/api/sign-out");
  location.assign("/sign-in");
}

/** Show what fits the link; without one, whoever is signed in already is told so. */
function begin() {
  const [form] = forms.filter((one) => Boolean(one.dataset.secret) === Boolean(secret));
  if (form) {
    show(form);
  } else {
    show();
    complain(new Error("There is nothing behind the # of this link. Open it whole, as it was given to you."));
  }
}

async function arrive() {
  secret = takeSecret();
  begin();
  if (!secret && forms.some((form) => !form.dataset.secret)) {
    await ask("GET", "/api/me").then(welcome, () => {});
  }
}

for (const form of forms) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    pressed(event.submitter ?? form.querySelector("button"), () => send(form));
  });
}
for (const box of document.querySelectorAll("[data-shows]")) {
  const field = box.form.elements[box.dataset.shows];
  box.addEventListener("change", () => { field.type = box.checked ? "text" : "password"; });
}
// Another link that is opened in the same window changes nothing but this.
addEventListener("hashchange", arrive);
arrive();
