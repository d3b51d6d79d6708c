// What both pages have for a lecture: full screen, large type, and the keys of a presenter's remote control.

import { $ } from "./dom.js";
import { guarded } from "./trouble.js";

const TYPED = ["INPUT", "SELECT", "TEXTAREA"];
const LARGER = 1.6; // times

export const isLarge = () => "large" in document.documentElement.dataset;

// How much larger names are written.
export const letters = () => (isLarge() ? LARGER : 1);

// on: {step(+1 or -1): a slide on or back; redraw(): letters have another size}
export function startPresenting(on) {
  $("full").addEventListener("click", guarded(async () => {
    if (document.fullscreenElement) await document.exitFullscreen();
    else await $("stage").requestFullscreen();
  }));
  document.addEventListener("fullscreenchange", () => { $("full").textContent = document.fullscreenElement ? "Leave full screen" : "Full screen"; });
  $("large").addEventListener("click", () => {
    document.documentElement.toggleAttribute("data-large");
    $("large").setAttribute("aria-pressed", String(isLarge()));
    on.redraw();
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || TYPED.includes(document.activeElement.tagName)) return;
    if (event.key === "f") $("full").click();
    else if (event.key === "l") $("large").click();
    else if (event.key === "PageDown" || event.key === "PageUp") on.step(event.key === "PageDown" ? 1 : -1);
    else return;
    event.preventDefault();
  });
  // An address of its own would be a view of its own.
  $("skip").addEventListener("click", (event) => {
    event.preventDefault();
    $("panel").focus();
    $("panel").scrollIntoView();
  });
}
