// The page: reads the conversation whenever something changed, and lets the person act. Nothing is kept here that the
// gateway does not have, except what could not be sent yet.

import { $, toast } from "./dom.js";
import { command, get, newId, post, press } from "./api.js";
import * as composer from "./composer.js";
import * as panel from "./panel.js";
import * as timeline from "./timeline.js";
import * as welcome from "./welcome.js";
import { language, onLanguage, say, speak } from "./words.js";

const known = document.documentElement.dataset.known === "yes";
const speaksKorean = document.documentElement.dataset.languages.split(" ").includes("ko");
const HANGUL = /[\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]/;
const loaded = new Map(); // conversation -> items
const liveTexts = new Map(); // turn -> text so far
const votes = new Map(); // turn -> value, until the gateway says the same
const busy = new Set(); // buttons pressed and not answered yet
const BUSY_MS = 8000;
const GONE_MS = 3000; // within this time the event stream tells why the cookie is worthless
let current = 1;
let oldest = 1;
let lastPosition = 0;
let working = false; // whether the gateway is busy with something the person sent
let reading = null;
let again = false;

const acts = {
  resend: composer.deliver,
  liveText: (turn) => liveTexts.get(turn) ?? "",
  isBusy: (data) => busy.has(data),
  voteOf: (turn) => votes.get(turn.id) ?? turn.vote,
  correct: composer.correct,
  async vote(turn, value) {
    votes.set(turn.id, value);
    draw();
    await attempt(() => press(`v:${turn.id}:${value === 1 ? "u" : value === -1 ? "d" : "0"}`), () => votes.get(turn.id) === value && votes.delete(turn.id));
  },
  async press(data, messageId) {
    busy.add(data);
    draw();
    setTimeout(() => busy.delete(data) && draw(), BUSY_MS);
    await attempt(() => press(data, messageId), () => busy.delete(data));
  },
  again: (turn) => acts.press(`t:${turn}`, null),
};

async function attempt(act, undo = () => {}) {
  try {
    await act();
  } catch (failure) {
    undo();
    fail(failure);
    draw();
  }
}

/** Begin as a stranger; somebody who was just forgotten reads the receipt first. */
function over(words) {
  if ($("gone-dialog").open) return;
  if (!words) {
    location.reload();
    return;
  }
  events?.close();
  $("gone-words").textContent = words;
  $("gone-dialog").addEventListener("close", () => location.reload());
  $("gone-dialog").showModal();
}

function fail(failure) {
  if (failure.code === "unauthenticated") setTimeout(over, GONE_MS, "");
  else toast(say(`error.${failure.code}`));
}

const isOpen = (item) => item.kind === "pending" && ["waiting", "generating"].includes(item.turn.state);

/** Everything to show, oldest first: loaded conversations with a line between them, then what is not stored yet. */
function items() {
  const found = [];
  for (let number = oldest; number <= current; number += 1) {
    if (current > oldest || number > 1) found.push({ kind: "divider", number, now: number === current, position: 0 });
    found.push(...(loaded.get(number) ?? []));
  }
  const stored = new Set(found.map((item) => item.client_id).filter(Boolean));
  composer.settle(new Set(found.filter((item) => item.about).map((item) => item.text)));
  for (const item of composer.unsaved(stored, current)) {
    const at = found.findIndex((other) => other.position > item.position);
    found.splice(at < 0 ? found.length : at, 0, item);
  }
  if (working && !found.some(isOpen)) found.push({ kind: "working", who: "bot" });
  const onlyDividers = found.every((item) => item.kind === "divider");
  return onlyDividers && oldest === current ? [] : found;
}

/** Mark the last part of each reply, which alone carries the votes, and the first words that the model cannot read. */
function marked(found) {
  const last = new Map(found.filter((item) => item.turn && item.kind === "reply").map((item) => [item.turn.id, item.id]));
  const foreign = speaksKorean ? null : found.find((item) => item.who === "you" && HANGUL.test(item.text ?? ""));
  return found.map((item) => {
    if (item === foreign) return { ...item, foreign: true };
    return last.get(item.turn?.id) === item.id ? { ...item, last: true } : item;
  });
}

function draw() {
  const scroll = $("scroll");
  const atEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 120;
  const found = marked(items()).map((item) => (item.turn ? { ...item, shown_vote: acts.voteOf(item.turn), busy: (item.buttons ?? []).flat().some((b) => busy.has(b.data)) } : { ...item, busy: (item.buttons ?? []).flat().some((b) => busy.has(b.data)) }));
  timeline.draw(found, acts);
  $("earlier").hidden = oldest <= 1;
  const writing = found.some(isOpen);
  $("stop").hidden = !writing;
  $("send").hidden = writing;
  if (atEnd) toEnd();
}

function toEnd() {
  $("scroll").scrollTop = $("scroll").scrollHeight;
}

async function read() {
  if (reading) {
    again = true;
    return reading;
  }
  reading = readNow().catch(fail).finally(() => {
    reading = null;
    if (again) {
      again = false;
      read();
    }
  });
  return reading;
}

async function readNow() {
  const [page] = await Promise.all([get("messages"), panel.refresh()]);
  if (page.current !== current) {
    current = page.current;
    oldest = current;
    loaded.clear();
  }
  loaded.set(current, page.items);
  working = page.working;
  lastPosition = Math.max(lastPosition, ...page.items.map((item) => item.position));
  for (const item of page.items) {
    if (!item.turn) continue;
    if (votes.get(item.turn.id) === item.turn.vote) votes.delete(item.turn.id);
    if (item.kind !== "pending") liveTexts.delete(item.turn.id);
  }
  busy.clear();
  composer.expect(page.awaiting && { ...page.items.findLast((item) => item.kind === "reply" && item.turn?.id === page.awaiting.turn), since: page.awaiting.since });
  draw();
}

async function readEarlier() {
  const wanted = oldest - 1;
  if (wanted < 1) return;
  const scroll = $("scroll");
  const fromEnd = scroll.scrollHeight - scroll.scrollTop;
  await attempt(async () => {
    const page = await get(`messages?conversation=${wanted}`);
    if (oldest !== wanted + 1) return; // a second tap, or a new conversation, was faster
    oldest = wanted;
    loaded.set(wanted, page.items);
    draw();
    scroll.scrollTop = scroll.scrollHeight - fromEnd;
  });
}

let events = null;
let silent = 0;

/** Listen to what happens; a page that nobody looks at does not hold a connection. */
function listen() {
  events?.close();
  events = null;
  if (document.hidden) return;
  events = new EventSource("/chat/api/stream");
  events.addEventListener("open", () => connected(true));
  events.addEventListener("error", () => connected(false));
  events.addEventListener("changed", read);
  events.addEventListener("note", (event) => {
    toast(JSON.parse(event.data).text);
    read();
  });
  events.addEventListener("gone", (event) => over(JSON.parse(event.data).text));
  events.addEventListener("live", (event) => {
    const { turn, text } = JSON.parse(event.data);
    liveTexts.set(turn, text);
    const scroll = $("scroll");
    const atEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 120;
    if (!timeline.live(turn, text)) read();
    if (atEnd) toEnd();
  });
}

function connected(yes) {
  clearTimeout(silent);
  const banner = $("banner");
  if (yes) {
    banner.hidden = true;
    read();
  } else {
    // A gateway that restarts is back in a moment; only a longer silence is worth a word.
    silent = setTimeout(() => {
      banner.textContent = say("offline");
      banner.hidden = false;
    }, 2500);
    if (events?.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
  }
}

async function choose(chosen) {
  const told = known ? attempt(() => post("language", { language: chosen })) : null;
  await speak(chosen);
  await told;
}

function wireChat() {
  panel.wire();
  composer.wire(draw, toEnd, () => ({ position: lastPosition + 0.5, conversation: current }), () => acts.press("e::no", null));
  onLanguage(draw);
  $("new").addEventListener("click", () => attempt(() => command("new")));
  $("stop").addEventListener("click", () => attempt(() => command("stop")));
  $("earlier").addEventListener("click", readEarlier);
  $("scroll").addEventListener("scroll", () => $("scroll").scrollTop < 40 && oldest > 1 && loaded.has(current) && $("scroll").scrollHeight > $("scroll").clientHeight + 80 && readEarlierOnce());
  for (const button of document.querySelectorAll("[data-command]")) {
    button.addEventListener("click", () => {
      panel.drawer(false);
      composer.put({ id: newId(), kind: "command", command: button.dataset.command, text: "" }, lastPosition + 0.5, current);
    });
  }
  document.addEventListener("visibilitychange", listen);
}

let scrolling = false;

async function readEarlierOnce() {
  if (scrolling) return;
  scrolling = true;
  await readEarlier();
  scrolling = false;
}

async function begin() {
  panel.wireCode();
  for (const button of document.querySelectorAll("[data-language]")) {
    button.addEventListener("click", () => choose(button.dataset.language));
  }
  await speak(language);
  if (known) {
    wireChat();
    await read();
    toEnd();
    listen();
  } else {
    welcome.wire();
  }
  document.documentElement.dataset.ready = "yes";
}

begin();
