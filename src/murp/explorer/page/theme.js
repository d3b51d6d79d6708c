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
  const parse = (name) => {
    const hex = style.getPropertyValue(name).trim();
    return [1, 3, 5].map((i) => Number.parseInt(hex.slice(i, i + 2), 16));
  };
  return {
    text: style.getPropertyValue("--text").trim(),
    halo: style.getPropertyValue("--disk").trim(),
    accent: style.getPropertyValue("--accent").trim(),
    subject: style.getPropertyValue("--subject").trim(),
    edge: parse("--edge"),
    background: parse("--disk"),
    levels: Array.from({ length: 8 }, (_, i) => parse(`--level-${i}`)),
    kinds: Array.from({ length: 4 }, (_, i) => parse(`--kind-${i}`)),
  };
}

export function startTheme(changed) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const dark = stored() ? stored() === "dark" : system.matches;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    $("theme").setAttribute("aria-pressed", String(dark));
    changed();
  };
  $("theme").addEventListener("click", () => {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("murp-theme", next);
      apply();
    } catch {
      document.documentElement.dataset.theme = next;
      $("theme").setAttribute("aria-pressed", String(next === "dark"));
      changed();
    }
  });
  system.addEventListener("change", apply);
  apply();
}
