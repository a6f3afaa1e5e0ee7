// Requests with both halves of the session. Content is set as text, so that none can become code.

// Half of the session. The other half is a cookie, which every port of this host can read.
export const KEY = "backburner-session";

export class RequestFailed extends Error {
  constructor(status, body) {
    const fields = (body?.errors ?? []).map((field) => `${field.where.split(".").pop()}: ${field.what}.`);
    const text = [body?.detail, body?.hint, ...fields].filter(Boolean).join(" ");
    super(text || `The server answered ${status}.`);
    this.status = status;
  }
}

export async function call(method, path, body) {
  // The default mode: in others the browser does not send the origin of the page.
  const headers = { "content-type": "application/json" };
  const key = localStorage.getItem(KEY);
  if (key) headers["x-backburner-session"] = key;
  const request = { method, headers, body: body && JSON.stringify(body) };
  const response = await fetch(path, request).catch(() => {
    throw new Error("Backburner does not respond. Check that it is running, and try again.");
  });
  const content = await response.json().catch(() => null);
  if (!response.ok) throw new RequestFailed(response.status, content);
  return content;
}

export function make(tag, text, properties = {}) {
  return Object.assign(document.createElement(tag), { textContent: text, ...properties });
}
