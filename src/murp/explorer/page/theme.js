// Light or dark: the system's choice until the reader makes one, which the browser keeps.

import { $ } from "./dom.js";

function stored() {
  try {
    return localStorage.getItem("murp-theme");
  } catch {
    return null; // a browser may forbid storage, above all to a page opened from a file
  }
}

export function colours() {
  const style = getComputedStyle(document.documentElement);
  const text = (name) => style.getPropertyValue(name).trim();
  const eight = (read, name, count = 8) => Array.from({ length: count }, (_, i) => read(`${name}-${i}`));
  const parse = (name) => {
    const hex = text(name);
    return [1, 3, 5].map((i) => Number.parseInt(hex.slice(i, i + 2), 16));
  };
  return {
    page: text("--page"),
    text: text("--text"),
    halo: text("--disk"),
    accent: text("--accent"),
    subject: text("--subject"),
    edgeText: text("--edge"),
    edge: parse("--edge"),
    background: parse("--disk"),
    levels: eight(parse, "--level"),
    levelTexts: eight(text, "--level"),
    groups: eight(parse, "--group"),
    groupTexts: eight(text, "--group"),
    kinds: eight(parse, "--kind", 4),
    kindTexts: eight(text, "--kind", 4),
  };
}

// The button says what it does.
function say(dark) {
  $("theme").textContent = dark ? "Light" : "Dark";
  $("theme").setAttribute("aria-label", dark ? "Light colours" : "Dark colours");
}

export function startTheme(changed) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const dark = stored() ? stored() === "dark" : system.matches;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    say(dark);
    changed();
  };
  $("theme").addEventListener("click", () => {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("murp-theme", next);
      apply();
    } catch {
      document.documentElement.dataset.theme = next;
      say(next === "dark");
      changed();
    }
  });
  system.addEventListener("change", apply);
  apply();
}
