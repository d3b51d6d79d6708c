// The buttons and lists around the picture.

import { copyLink } from "./copying.js";
import { $ } from "./dom.js";
import { shared, source, state } from "./shared.js";
import { guarded } from "./trouble.js";

// on: {refresh(), choose(id), remember()}
export function startControls(on) {
  const set = (name, value) => { state[name] = value; on.refresh(); };
  for (const name of ["relation", "direction", "projection"]) $(name).addEventListener("change", (event) => set(name, event.target.value));
  $("view-map").addEventListener("click", () => set("view", "map"));
  $("view-question").addEventListener("click", () => set("view", "question"));
  $("origin").addEventListener("click", () => on.choose(""));
  $("edges").addEventListener("change", guarded(async ({ target: box }) => {
    let edges = null;
    try {
      if (box.checked) edges = await source.edges(state.relation);
    } catch (error) {
      box.checked = false;
      throw error;
    }
    state.edges = box.checked ? "1" : "0";
    for (const disk of shared.disks) { disk.edges = edges; disk.settle(); }
    on.remember();
  }));
  $("link").addEventListener("click", guarded(async () => {
    on.remember();
    await copyLink();
  }));
  // An address of its own would be a view of its own.
  $("skip").addEventListener("click", (event) => {
    event.preventDefault();
    $("panel").focus();
    $("panel").scrollIntoView();
  });
}
