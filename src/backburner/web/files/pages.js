// Takes the secret out of the address, sends it with the form, and shows the result.
// All content is set as text, so that none of it can become code.

import { KEY, call, keepSession } from "./server.js";

const forms = [...document.querySelectorAll("form")];
const problem = document.querySelector("#problem");
let secret = "";

function takeSecret() {
  const taken = location.hash.slice(1);
  if (taken) history.replaceState(null, "", location.pathname + location.search);
  return taken;
}

function show(...shown) {
  for (const part of [...forms, problem]) part.hidden = !shown.includes(part);
  shown.find((part) => part.matches("form"))?.querySelector("input, button").focus();
}

function showError(error) {
  // Texts of the API name commands by the plain name of the program.
  problem.textContent = error.message.replaceAll("“backburner ", () => `“${document.documentElement.dataset.command} `);
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
    keepSession(await call("POST", form.dataset.to, body));
  } catch (error) {
    // A used secret is of no use again; other errors can be corrected in the form.
    if (error.status === 401 && form.dataset.secret) {
      secret = "";
      showForm();
    }
    throw error;
  }
  // The zone counts unless the user has set one. A zone that is not taken keeps nobody out.
  const found_zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  await call("PUT", "/api/me", { found_zone }).catch(() => {});
  enter();
}

/** Go where the user wanted to go; only an address of our own counts. */
function enter() {
  const wanted = new URL(new URLSearchParams(location.search).get("next") ?? "/", location.origin);
  location.replace(wanted.origin === location.origin && wanted.protocol === location.protocol ? wanted : "/");
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
    await call("GET", "/api/me").then(enter, () => {});
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
