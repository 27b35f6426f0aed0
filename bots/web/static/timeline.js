// The conversation on the page: one element per item, replaced only when what it shows has changed.

import { $, h, icon, safe } from "./dom.js";
import { language, say } from "./words.js";

const drawn = new Map(); // key -> { element, signature }

/** Make the timeline show `items` in order. `acts` is what its buttons do. */
export function draw(items, acts) {
  const timeline = $("timeline");
  const wanted = items.map((item) => ({ key: keyOf(item), signature: JSON.stringify([item, language]), item }));
  const keys = new Set(wanted.map((entry) => entry.key));
  for (const [key, entry] of drawn) {
    if (!keys.has(key)) {
      entry.element.remove();
      drawn.delete(key);
    }
  }
  const focused = document.activeElement;
  let redrawn = null;
  let before = null;
  for (const { key, signature, item } of wanted) {
    const old = drawn.get(key);
    let element = old?.element;
    if (old?.signature !== signature) {
      element = keepOpen(element, elementOf(item, acts));
      if (old?.element.contains(focused)) redrawn = element;
      old?.element.replaceWith(element);
      drawn.set(key, { element, signature });
    }
    const place = before ? before.nextSibling : timeline.firstChild;
    if (element !== place) timeline.insertBefore(element, place);
    before = element;
  }
  // Whoever steers with the keyboard stays where they were, and at once: the next key may be on its way.
  const act = redrawn && focused.dataset.act;
  if (act) redrawn.querySelector(`[data-act="${CSS.escape(act)}"]`)?.focus({ preventScroll: true });
  $("empty").hidden = items.length > 0;
}

/** Show how far the reply of a turn is, without drawing anything else; false when the turn is not on the page yet. */
export function live(turn, text) {
  const box = drawn.get(`pending:${turn}`)?.element.querySelector(".live");
  if (!box) return false;
  box.textContent = text;
  box.hidden = !text;
  box.previousElementSibling.hidden = Boolean(text);
  return true;
}

function keyOf(item) {
  if (item.local) return `you:${item.id}`;
  if (item.kind === "divider") return `divider:${item.number}`;
  if (item.kind === "pending") return `pending:${item.turn.id}`;
  if (item.kind === "working") return "working";
  if (item.who === "you") return item.client_id ? `you:${item.client_id}` : `words:${item.position}:${item.about}`;
  return `part:${item.id}`;
}

function keepOpen(old, fresh) {
  const details = fresh.querySelector("details");
  if (details && old?.querySelector("details[open]")) details.open = true;
  return fresh;
}

function elementOf(item, acts) {
  if (item.kind === "divider") return h("p", { class: "divider" }, say(item.now ? "conversation.now" : "conversation", item));
  if (item.who === "you") return mine(item, acts);
  if (item.kind === "working") return working();
  return item.kind === "pending" ? pending(item, acts) : theirs(item, acts);
}

function mine(item, acts) {
  const words = item.text === null
    ? h("p", { class: "quiet" }, say("unkept"))
    : h("p", { class: "plain-text", dir: "auto" }, item.text);
  const note = item.about || item.kind === "correction" ? h("small", { class: "tag" }, say("correction")) : null;
  return h("article", { class: "message mine", "aria-label": say("you.said") }, h("div", { class: "bubble" }, note, words), stateOf(item, acts),
    item.foreign ? h("p", { class: "state" }, say("model.english")) : null);
}

function stateOf(item, acts) {
  if (item.state === "sending") return h("p", { class: "state" }, say("state.sending"));
  if (item.state !== "failed") return null;
  return h("p", { class: "state failed", role: "alert" }, say(`error.${item.code}`), " ",
    h("button", { type: "button", class: "link", onclick: () => acts.resend(item.id) }, say("state.resend")));
}

const dots = (label, hidden) =>
  h("p", { class: "dots", role: "status", "aria-label": say(label), hidden }, h("i"), h("i"), h("i"));

/** Nothing is being written yet, but the gateway is busy with what was said last. */
const working = () =>
  h("article", { class: "message theirs working", "aria-busy": "true" },
    h("div", { class: "bubble" }, dots("working", false)), h("p", { class: "state" }, say("working")));

function pending(item, acts) {
  const open = item.turn.state === "waiting" || item.turn.state === "generating";
  const bubble = h("div", { class: "bubble" });
  if (open) {
    const text = acts.liveText(item.turn.id);
    bubble.append(dots("typing", Boolean(text)), h("p", { class: "live plain-text", dir: "auto", hidden: !text }, text));
  } else {
    bubble.append(h("p", { class: "quiet" }, say(item.turn.state === "failed" ? "lost" : item.turn.state === "stopped" ? "stopped" : "unkept")));
  }
  return h("article", { class: `message theirs ${item.turn.state}`, "aria-busy": String(open) }, bubble,
    open ? null : toolbar(item, acts));
}

function theirs(item, acts) {
  const bubble = h("div", { class: "bubble" });
  if (item.turn?.again) bubble.append(h("small", { class: "tag" }, say("again.mark")));
  if (item.file) bubble.append(fileOf(item.file));
  else bubble.append(safe(h("div", { class: "rich", dir: "auto" }), item.html));
  for (const row of item.buttons) bubble.append(rowOf(row, item, acts));
  const whole = item.turn && item.kind === "reply" && item.last;
  return h("article", { class: `message theirs ${item.kind} ${item.turn?.state ?? ""}` }, bubble, whole ? toolbar(item, acts) : null);
}

const fileOf = (file) => h("a", { class: "save", href: file.href, download: file.name }, icon("file"), say("file", { name: file.name }));

function rowOf(row, item, acts) {
  const buttons = row.map((button) =>
    h("button", { type: "button", dir: "auto", "data-act": button.data, disabled: acts.isBusy(button.data), onclick: () => acts.press(button.data, item.message_id) }, button.label));
  return h("div", { class: "choices" }, ...buttons);
}

function toolbar(item, acts) {
  const { turn } = item;
  const bar = h("div", { class: "bar" });
  if (turn.state !== "failed" && item.html !== undefined) {
    bar.append(vote(turn, 1, "up", acts), vote(turn, -1, "down", acts));
    bar.append(tool("correct", "pen", () => {
      acts.correct(item);
      bar.scrollIntoView({ block: "nearest" }); // the line above the text field takes room from the conversation
    }));
  }
  // What was not kept cannot be answered once more.
  if (turn.repeatable) bar.append(tool("again", "again", () => acts.again(turn.id)));
  bar.append(author(turn));
  return bar;
}

function vote(turn, value, name, acts) {
  const now = acts.voteOf(turn);
  const button = tool(`vote.${name}`, name, () => acts.vote(turn, now === value ? 0 : value));
  button.setAttribute("aria-pressed", String(now === value));
  return button;
}

const tool = (label, picture, act) =>
  h("button", { type: "button", class: "tool", "aria-label": say(label), title: say(label), "data-act": label, onclick: act }, icon(picture));

function author(turn) {
  const rows = [
    ["by.checkpoint", turn.checkpoint ?? say("by.none")],
    ["by.base_id", turn.base ?? "–"],
    ["by.memory", say("by.memory.value", { version: turn.memory_version, used: turn.memory_used })],
  ];
  if (turn.duration_ms !== null) {
    rows.push(["by.time", say("by.time.value", { first: seconds(turn.first_token_ms), whole: seconds(turn.duration_ms) })]);
  }
  const list = h("dl", {}, ...rows.flatMap(([key, value]) => [h("dt", {}, say(key)), h("dd", {}, value)]));
  const summary = h("summary", { title: say("by.title"), "data-act": "by" }, say(turn.checkpoint ? `by.${turn.scope}` : "by.base"));
  return h("details", { class: "author" }, summary, list);
}

const seconds = (ms) => (ms === null ? "–" : (ms / 1000).toLocaleString(language, { maximumFractionDigits: 1 }));

