// Elements without innerHTML: text is always a text node. The one way for HTML is `safe`, for what the server sanitised.

const policy = window.trustedTypes
  ? window.trustedTypes.createPolicy("mentee", { createHTML: (html) => html })
  : { createHTML: (html) => html };

export const $ = (id) => document.getElementById(id);

/** Make an element: attributes as given, `on…` as listeners, null and false left out. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `#i-${name}`);
  svg.append(use);
  return svg;
}

/** Put HTML that the server sanitised into `element`; links open beside the chat. */
export function safe(element, html) {
  const template = document.createElement("template");
  template.innerHTML = policy.createHTML(html);
  for (const link of template.content.querySelectorAll("a")) link.target = "_blank";
  for (const block of template.content.querySelectorAll("p, li, h1, h2, h3, h4, h5, h6, td, th")) block.dir = "auto";
  for (const table of template.content.querySelectorAll("table")) {
    const frame = h("div", { class: "wide", tabindex: "0" });
    table.replaceWith(frame);
    frame.append(table);
  }
  element.replaceChildren(template.content);
  return element;
}

let toastTimer = 0;

/** Show a short sentence for a moment. */
export function toast(words) {
  const box = $("toast");
  box.textContent = words;
  box.hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (box.hidden = true), 5000);
}

/** Ask yes or no; resolves to true for yes. */
export function ask(words) {
  const dialog = $("ask-dialog");
  $("ask-words").textContent = words;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}
