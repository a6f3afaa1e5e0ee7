// The end of a sign-in to the server of a connection. The address has a code in it, which goes to
// the server in the body of a request with both halves of the session, and leaves the history.

import { KEY, call, make } from "./session.js";

const view = document.querySelector("#view");
const address = location.href;
history.replaceState(null, "", location.pathname);

function show(title, ...parts) {
  document.title = title;
  view.replaceChildren(make("h1", title), ...parts);
}

/** Nobody is signed in here: only the terminal that has started it can finish. */
function showAddress() {
  const copy = make("button", "Copy the address");
  const text = make("pre", address);
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(address);
    copy.textContent = "Copied";
  });
  show(
    "One more step",
    make("p", "If you started this in a terminal, paste this address there:"),
    text,
    ...(navigator.clipboard ? [copy] : []),
    make("p", "If you did not start it, close this page, and give the address to nobody.", { className: "aside" }),
  );
}

function showEnd(end) {
  if (!end.check) {
    show("Continue in the terminal", make("p", `It finishes the sign-in of ${end.connection_name}. You can close this page.`));
  } else if (end.check.error) {
    show(`Signed in to ${end.connection_name}`, make("p", "Its tools could not be listed:"), make("p", end.check.error));
  } else {
    const { counts, title } = end.check.connection;
    show(`Signed in to ${title}`, make("p", `Agents can use ${counts.offered} tools. You can close this page.`));
  }
}

async function start() {
  if (!localStorage.getItem(KEY)) return showAddress();
  try {
    showEnd(await call("POST", "/api/connections/finish-sign-in", { address }));
  } catch (error) {
    if (error.status === 401) return showAddress();
    show("You are not signed in to that server", make("p", error.message));
  }
}

start();
