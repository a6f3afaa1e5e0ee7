// The end of a sign-in. The code in the address goes to the server in a body, and leaves the history.

import { KEY, call, make } from "./server.js";

const words = JSON.parse(document.querySelector('meta[name="words"]').content);
const view = document.querySelector("#view");
const address = location.href;
history.replaceState(null, "", location.pathname);

function show(title, ...parts) {
  document.title = title;
  view.replaceChildren(make("h1", title), ...parts);
}

/** Nobody is signed in here: only the terminal that has started it can finish. */
function showAddress() {
  const copy = make("button", words.copy, { className: "button" });
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(address);
    copy.textContent = words.copied;
  });
  show(
    words.step,
    make("p", words.paste),
    make("pre", address, { className: "command" }),
    ...(navigator.clipboard ? [copy] : []),
    make("p", words.warn, { className: "aside" }),
  );
}

const back = (text, href) => make("a", text, { href, className: "button main" });

/** Where the sign-in was begun; only addresses of our own are kept there. */
function readReturn(id) {
  const place = sessionStorage.getItem("backburner-return");
  sessionStorage.removeItem("backburner-return");
  return place ?? `/connections/${id}`;
}

function showEnd(end) {
  if (!end.check) {
    return show(words.terminal, make("p", words.terminal_about.replace("{name}", () => end.connection_name)));
  }
  const { counts, id, title } = end.check.connection;
  if (end.check.error) {
    const about = make("p", `${end.check.error} ${end.check.hint}`);
    return show(words.no_list.replace("{title}", () => title), make("p", words.no_list_about), about, back(words.back, `/connections/${id}`));
  }
  sessionStorage.setItem("backburner-said", words.signed_in.replace("{tools}", counts.offered).replace("{title}", () => title));
  location.replace(readReturn(id));
}

async function start() {
  if (!localStorage.getItem(KEY)) return showAddress();
  try {
    showEnd(await call("POST", "/api/connections/finish-sign-in", { address }));
  } catch (error) {
    if (error.status === 401) return showAddress();
    show(words.failed, make("p", error.message), back(words.back, "/connections"));
  }
}

start();
