// The first visit: the notice, the choices, and the way back in with a recovery code.

import { $ } from "./dom.js";
import { post, press } from "./api.js";
import { language, say } from "./words.js";
import { showCode } from "./panel.js";

function problem(form, failure) {
  const box = form.querySelector(".error");
  box.textContent = say(`error.${failure.code}`);
  box.hidden = false;
}

async function start(event) {
  event.preventDefault();
  const form = event.currentTarget;
  const button = $("start");
  button.disabled = true;
  try {
    const invitation = form.elements.namedItem("invitation")?.value.trim();
    const left = [...form.querySelectorAll("[data-purpose]:not(:checked)")].map((input) => input.dataset.purpose);
    const begun = await post("start", { language, left_off: left, ...(invitation ? { invitation } : {}) });
    for (const input of form.querySelectorAll("[data-purpose]:checked")) await press(`s:${input.dataset.purpose}:1`);
    await showCode(begun.recovery_code);
    location.reload();
  } catch (failure) {
    problem(form, failure);
    button.disabled = false;
  }
}

async function recover(event) {
  event.preventDefault();
  const form = event.currentTarget;
  try {
    await post("recover", { code: form.elements.namedItem("code").value });
    location.reload();
  } catch (failure) {
    problem(form, failure);
  }
}

function swap(shown, hidden) {
  hidden.hidden = true;
  shown.hidden = false;
  shown.querySelector("input, button")?.focus();
}

export function wire() {
  const [welcome, back] = [$("welcome"), $("recover")];
  welcome.addEventListener("submit", start);
  back.addEventListener("submit", recover);
  $("open-recover").addEventListener("click", () => swap(back, welcome));
  $("close-recover").addEventListener("click", () => swap(welcome, back));
}
