// Writing: the text field, its correction mode, and what happens to a message until the gateway has it.

import { $, safe } from "./dom.js";
import { newId, RETRYABLE, send } from "./api.js";
import { say } from "./words.js";

const KEPT = "mentee-unsent";
const RETRY_MS = 4000;
const mine = new Map(); // id -> { update, state: sending | failed | accepted, code, position, conversation }
let correcting = null; // the reply that the pencil was tapped under
let expected = null; // the reply that the dialogue asked the person to write themself
let answered = null; // since when what is answered already was asked: the gateway may not know it yet
let changed = () => {};
let written = () => {};

/** What the person wrote here and the conversation does not show yet, as items of the timeline. */
export function unsaved(stored, conversation) {
  for (const id of [...mine.keys()]) if (stored.has(id)) mine.delete(id);
  keep();
  return [...mine.values()]
    .filter((entry) => entry.conversation === conversation || entry.state !== "accepted")
    .map((entry) => ({ local: true, who: "you", id: entry.update.id, text: wordsOf(entry.update), state: entry.state, code: entry.code, position: entry.position, kind: entry.update.kind }));
}

const wordsOf = (update) => (update.kind === "command" ? `/${update.command} ${update.text}`.trim() : update.text);

/** Forget what the conversation shows as words about a reply now: it comes back without the id it was sent with. */
export function settle(texts) {
  for (const [id, entry] of mine) if (entry.state === "accepted" && texts.has(entry.update.text)) mine.delete(id);
}

/** Put an update in the timeline and send it. */
export function put(update, position, conversation) {
  mine.set(update.id, { update, state: "sending", code: null, position, conversation });
  changed();
  written();
  return deliver(update.id);
}

export async function deliver(id) {
  const entry = mine.get(id);
  if (!entry) return;
  entry.state = "sending";
  changed();
  try {
    await send(entry.update);
    entry.state = "accepted";
  } catch (failure) {
    entry.state = "failed";
    entry.code = failure.code;
    if (RETRYABLE.has(failure.code)) setTimeout(() => entry.state === "failed" && deliver(id), RETRY_MS);
  }
  keep();
  changed();
}

function keep() {
  const unsent = [...mine.values()].filter((entry) => entry.state !== "accepted");
  try {
    sessionStorage.setItem(KEPT, JSON.stringify(unsent));
  } catch {
    // A browser without storage loses what was not sent when the page is closed; nothing else depends on it.
    return;
  }
}

/** Send again what a closed or reloaded page could not. */
function restore() {
  let unsent = [];
  try {
    unsent = JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
  } catch {
    unsent = [];
  }
  for (const entry of unsent) {
    mine.set(entry.update.id, entry);
    deliver(entry.update.id);
  }
}

/** Write a correction of `item` next, or nothing special with null. */
export function correct(item) {
  correcting = item;
  show();
  if (item) $("text").focus();
}

/** Show that the next message is the reply to `item` as the person wants it, or nothing special with null. */
export function expect(item) {
  expected = item && item.since !== answered ? item : null;
  show();
}

function show() {
  const item = correcting ?? expected;
  $("correcting").hidden = !item;
  $("corrected").textContent = item?.html ? safe(document.createElement("p"), item.html).textContent.slice(0, 160) : "";
  $("text").dataset.hint = item ? "say.correct" : "say";
  $("text").placeholder = say($("text").dataset.hint);
}

/** Leave the mode the field is in; true when it was the dialogue that had asked. */
function leave() {
  const asked = !correcting && Boolean(expected);
  if (asked) answered = expected.since;
  correcting = null;
  if (asked) expected = null;
  show();
  return asked;
}

function updateOf(text) {
  const id = newId();
  if (correcting?.message_id) return { id, kind: "correction", text, reply_to: correcting.message_id };
  return { id, kind: "message", text };
}

function fit() {
  const field = $("text");
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight, window.innerHeight * 0.4)}px`;
}

/**
 * Wire the field: `onChange` draws, `onWritten` follows each new message of the person's own, `place` says where it
 * belongs, `onDecline` tells the dialogue that what it asked for will not come.
 */
export function wire(onChange, onWritten, place, onDecline) {
  changed = onChange;
  written = onWritten;
  const field = $("text");
  const submit = () => {
    const text = field.value;
    if (!text.trim()) return;
    const update = updateOf(text);
    field.value = "";
    leave();
    fit();
    const { position, conversation } = place();
    put(update, position, conversation);
  };
  field.addEventListener("input", fit);
  field.addEventListener("keydown", (event) => {
    // Only a touch keyboard keeps Enter for new lines; a machine that reports no pointer has real keys.
    const byHand = !window.matchMedia("(pointer: coarse)").matches;
    // While a syllable is being composed, Enter belongs to the input method.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && byHand) {
      event.preventDefault();
      submit();
    }
    if (event.key === "Escape" && leave()) onDecline();
  });
  $("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  $("uncorrect").addEventListener("click", () => leave() && onDecline());
  window.addEventListener("online", () => {
    for (const [id, entry] of mine) if (entry.state === "failed") deliver(id);
  });
  restore();
}
