// Keys for the feedback queue: j/k move, a r q l u decide, ? shows them. Everything also works without this file.
"use strict";

const typing = (el) => el.matches("input, textarea, select, [contenteditable]");
const rows = () => [...document.querySelectorAll(".queue .rows a")];

function move(step) {
  const all = rows();
  const here = all.findIndex((a) => a.getAttribute("aria-current"));
  const next = all[Math.min(all.length - 1, Math.max(0, here + step))];
  if (next && all.indexOf(next) !== here) next.click();
}

function press(key) {
  const button = document.querySelector(`.detail [data-key="${key}"]`);
  if (!button) return false;
  const reason = button.form.elements.reason;
  if (button.dataset.needs && reason && !reason.value.trim()) {
    ask(button, reason);
  } else {
    button.click();
  }
  return true;
}

// A decision that needs a reason: the cursor goes to the reason, Enter then means that decision.
function ask(button, reason) {
  for (const other of button.form.querySelectorAll(".asked")) other.classList.remove("asked");
  button.classList.add("asked");
  reason.placeholder = button.form.dataset.reason || "";
  reason.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const el = event.target;
  if (typing(el)) {
    if (event.key === "Escape") el.blur();
    if (event.key === "Enter" && el.name === "reason") {
      const asked = el.form.querySelector(".asked");
      if (asked && el.value.trim()) {
        event.preventDefault();
        asked.click();
      }
    }
    return;
  }
  if (event.key === "j" || event.key === "k") {
    event.preventDefault();
    move(event.key === "j" ? 1 : -1);
  } else if (event.key === "?") {
    document.querySelector(".keys")?.classList.toggle("shown");
  } else if (event.key.length === 1 && press(event.key.toLowerCase())) {
    event.preventDefault();
  }
});

// The same for the mouse: a decision without its reason asks for it instead of failing.
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-needs]");
  const reason = button?.form?.elements.reason;
  if (reason && !reason.value.trim()) {
    event.preventDefault();
    event.stopPropagation();
    ask(button, reason);
  }
}, true);

function settle(root) {
  root.querySelector?.(".queue [aria-current]")?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("htmx:afterSettle", (event) => settle(event.target.parentElement || document));
document.addEventListener("DOMContentLoaded", () => {
  document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  settle(document);
});
