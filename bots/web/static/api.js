// Talking to the gateway. A failure carries the word that `error.<code>` says in the page's language.

export class Failure extends Error {
  constructor(code) {
    super(code);
    this.code = code;
  }
}

const LIMIT_MS = 20000;

async function call(path, options) {
  let answer;
  try {
    answer = await fetch(`/chat/api/${path}`, { ...options, signal: AbortSignal.timeout(LIMIT_MS) });
  } catch {
    throw new Failure("offline");
  }
  let body = null;
  try {
    body = await answer.json();
  } catch {
    body = null;
  }
  if (!answer.ok) throw new Failure(typeof body?.error?.code === "string" ? body.error.code : "failed");
  return body;
}

export const get = (path) => call(path, {});

// What is short enough for it reaches the gateway even when the page is left at that moment.
const KEEPALIVE_CHARS = 10000;

export function post(path, body = {}) {
  const text = JSON.stringify(body);
  const headers = { "Content-Type": "application/json" };
  return call(path, { method: "POST", headers, body: text, keepalive: text.length < KEEPALIVE_CHARS });
}

/** A fresh id for an update. `randomUUID` exists on secure pages only, so it is written out here. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** Send one thing the person did. Sending it again with the same id has no second effect. */
export const send = (update) => post("updates", update);

let pressed = Promise.resolve();

/** Press a button. One press leaves when the one before it has arrived: requests side by side may overtake each other,
 * and of two votes the later must win. */
export function press(data, messageId = null) {
  const update = { id: newId(), kind: "press", data, reply_to: messageId };
  const sent = pressed.then(() => send(update));
  pressed = sent.catch(() => null);
  return sent;
}

export const command = (name, text = "") => send({ id: newId(), kind: "command", command: name, text });

export const RETRYABLE = new Set(["offline", "unavailable", "failed", "too_many"]);
