// The page's sentences in the language of the moment.

const listeners = new Set();
let sentences = {};
export let language = document.documentElement.lang;

/** The sentence `key` with its {places} filled. */
export function say(key, values = {}) {
  return (sentences[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}

export const onLanguage = (listener) => listeners.add(listener);

/** Load a language and say everything on the page in it. */
export async function speak(chosen) {
  const answer = await fetch(`/chat/strings/${chosen}.json`);
  if (!answer.ok) return;
  sentences = await answer.json();
  language = chosen;
  document.documentElement.lang = chosen;
  document.title = say("title", { name: document.documentElement.dataset.name });
  for (const element of document.querySelectorAll("[data-t]")) element.textContent = say(element.dataset.t);
  for (const element of document.querySelectorAll("[data-hint]")) element.placeholder = say(element.dataset.hint);
  for (const element of document.querySelectorAll("[data-label]")) {
    element.setAttribute("aria-label", say(element.dataset.label));
    if (element.hasAttribute("title")) element.title = say(element.dataset.label);
  }
  for (const button of document.querySelectorAll("[data-language]")) {
    button.setAttribute("aria-pressed", String(button.dataset.language === chosen));
  }
  for (const listener of listeners) listener();
}

export const day = (iso) => new Date(iso).toLocaleDateString(language, { month: "short", day: "numeric" });
