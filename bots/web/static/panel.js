// The side panel: what answers, what is remembered, what is allowed, and the person's own matters.

import { $, ask, h, toast } from "./dom.js";
import { get, post, press } from "./api.js";
import { day, onLanguage, say } from "./words.js";

let me = null;
const asked = new Map(); // purpose -> wanted state, until the gateway says the same

/** Read everything about the person again and show it. */
export async function refresh() {
  me = await get("me");
  draw();
  return me;
}

function draw() {
  if (!me) return;
  drawAnswering();
  drawTraining();
  drawMemory();
  for (const input of document.querySelectorAll("#switches input")) drawSwitch(input);
}

function drawAnswering() {
  const { release } = me;
  const title = say(release ? `answering.${release.scope}` : "answering.base");
  $("answering").textContent = title;
  $("answering-more").textContent = release ? `${release.name} · ${say("answering.since", { date: day(release.since) })}` : me.base;
  const subtitle = $("subtitle");
  delete subtitle.dataset.t;
  subtitle.textContent = title;
}

function drawTraining() {
  const box = $("training");
  const words = trainingWords(me.training);
  box.hidden = !words;
  if (!words) return;
  box.firstElementChild.textContent = words;
  const bar = box.lastElementChild;
  const running = me.training.state === "queued" || me.training.state === "running";
  bar.hidden = !running;
  const { step, of: steps } = me.training.progress;
  if (Number.isFinite(step) && steps > 0) {
    bar.max = steps;
    bar.value = step;
  } else {
    bar.removeAttribute("value");
  }
}

function trainingWords(training) {
  if (!training) return "";
  if (training.state === "queued") return say("training.queued");
  if (training.state === "running") {
    const { step, of: steps } = training.progress;
    const counted = Number.isFinite(step) && steps > 0 ? ` ${say("training.steps", { done: step, needed: steps })}` : "";
    return say(`training.${training.stage}`) + counted;
  }
  if (training.verdict === "refused") return say("training.refused");
  return training.state === "failed" ? say("training.failed") : "";
}

function drawMemory() {
  const lines = me.memory.map(lineOf);
  $("memory").replaceChildren(...lines);
  $("memory-empty").hidden = lines.length > 0;
  $("memory-empty").textContent = say(me.consents.memory.on ? "memory.empty" : "memory.off");
}

function lineOf(line) {
  const undo = h("button", { type: "button", class: "link", "aria-label": say("memory.undo.of", { text: line.text }), onclick: () => undoLine(undo, line.id) }, say("memory.undo"));
  const examples = line.examples.map((example) =>
    h("blockquote", { dir: "auto" }, h("small", {}, example.prompt), example.good));
  const more = examples.length ? h("details", {}, h("summary", {}, say("memory.example")), ...examples) : null;
  return h("li", {},
    h("p", { class: "line", dir: "auto" }, line.text),
    h("div", { class: "line-foot" }, h("small", { class: "tag" }, say(`memory.kind.${line.kind}`)), undo),
    roadOf(line), more);
}

function roadOf(line) {
  if (line.in_adapter) return h("p", { class: "tag learnt" }, say("memory.adapter"));
  if (line.kind === "fact") return h("small", { class: "quiet" }, say("memory.fact"));
  if (!line.road) return h("small", { class: "quiet" }, say("memory.kept"));
  const steps = ["uses", "conversations", "approved"].map((name) => {
    const [done, needed] = line.road[name];
    const words = say(`memory.${name}`, { done: Math.min(done, needed), needed });
    return h("label", { class: done >= needed ? "reached" : "" }, h("meter", { min: 0, max: needed, value: Math.min(done, needed) }), words);
  });
  return h("div", { class: "road", role: "group", "aria-label": say("memory.progress") }, h("span", {}, say("memory.progress")), ...steps);
}

async function undoLine(button, id) {
  button.disabled = true;
  try {
    await press(`m:${id}:undo`);
  } catch (failure) {
    button.disabled = false;
    toast(say(`error.${failure.code}`));
  }
}

function drawSwitch(input) {
  const { purpose } = input.dataset;
  const { on } = me.consents[purpose];
  if (asked.get(purpose) === on) asked.delete(purpose);
  input.checked = asked.get(purpose) ?? on;
  input.setAttribute("aria-busy", String(asked.has(purpose)));
}

/** Tell the gateway what the person allows. */
export async function allow(purpose, on) {
  asked.set(purpose, on);
  try {
    await press(`s:${purpose}:${on ? 1 : 0}`);
  } catch (failure) {
    asked.delete(purpose);
    toast(say(`error.${failure.code}`));
  }
  draw();
}

/** Show a recovery code until the person says that it is kept. */
export function showCode(code) {
  const dialog = $("code-dialog");
  $("code").textContent = code;
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => {
    $("code").textContent = "";
    resolve();
  }, { once: true }));
}

async function copyCode() {
  try {
    await navigator.clipboard.writeText($("code").textContent);
    toast(say("code.copied"));
  } catch {
    getSelection().selectAllChildren($("code")); // no clipboard on plain http: mark it for copying by hand
  }
}

async function newCode() {
  if (!(await ask(say("you.code.confirm")))) return;
  try {
    await showCode((await post("recovery-code")).recovery_code);
  } catch (failure) {
    toast(say(`error.${failure.code}`));
  }
}

async function leave() {
  if (!(await ask(say("you.leave.confirm")))) return;
  try {
    await post("leave");
    location.reload();
  } catch (failure) {
    toast(say(`error.${failure.code}`));
  }
}

/** Open or close the drawer of narrow screens. */
export function drawer(open) {
  document.documentElement.classList.toggle("panel-open", open);
  $("menu").setAttribute("aria-expanded", String(open));
  $("shade").hidden = !open;
  if (open) $("panel-close").focus();
  else if ($("panel").contains(document.activeElement)) $("menu").focus();
}

export function wire() {
  for (const input of document.querySelectorAll("#switches input")) {
    input.addEventListener("change", () => allow(input.dataset.purpose, input.checked));
  }
  $("new-code").addEventListener("click", newCode);
  $("leave").addEventListener("click", leave);
  $("menu").addEventListener("click", () => drawer(true));
  $("panel-close").addEventListener("click", () => drawer(false));
  $("shade").addEventListener("click", () => drawer(false));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && document.documentElement.classList.contains("panel-open")) drawer(false);
  });
  onLanguage(draw);
}

export function wireCode() {
  // The code is shown once: only the person's own word closes the box.
  $("code-dialog").addEventListener("cancel", (event) => event.preventDefault());
  $("code-kept").addEventListener("click", () => $("code-dialog").close());
  $("code-copy").addEventListener("click", copyCode);
}
