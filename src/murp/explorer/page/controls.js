// The buttons and lists around the picture.

import { copyLink } from "./copying.js";
import { $ } from "./dom.js";
import { savePng, saveSvg } from "./download.js";
import { shared, source, state } from "./shared.js";
import { guarded } from "./trouble.js";

// on: {refresh(), choose(id), remember(), undo()}
export function startControls(on) {
  const set = (name, value) => { state[name] = value; on.refresh(); };
  for (const name of ["relation", "direction", "projection", "colour", "size"]) $(name).addEventListener("change", (event) => set(name, event.target.value));
  $("view-map").addEventListener("click", () => set("view", "map"));
  $("view-question").addEventListener("click", () => set("view", "question"));
  $("origin").addEventListener("click", () => on.choose(""));
  $("tree").addEventListener("change", (event) => set("tree", event.target.checked ? "1" : "0"));
  for (const name of ["colour", "size"]) $(name).addEventListener("change", () => shared.hidden.clear());
  $("undo").addEventListener("click", on.undo);
  const zoom = (factor) => () => {
    for (const disk of shared.disks) { disk.zoomAt(0, 0, factor); disk.settle(); }
    on.remember();
  };
  $("nearer").addEventListener("click", zoom(1.5));
  $("farther").addEventListener("click", zoom(1 / 1.5));
  const title = (i) => `${shared.about.graph.name} · ${shared.about.runs[i].title}`;
  const name = () => [shared.about.graph.name, state.entity, state.view].filter(Boolean).join("-").replace(/[^\w.-]+/g, "_");
  $("png").addEventListener("click", () => shared.disks.forEach((disk, i) => savePng(disk, title(i), shared.look, `${name()}${i ? `-${i + 1}` : ""}`)));
  $("svg").addEventListener("click", () => shared.disks.forEach((disk, i) => saveSvg(disk, title(i), shared.look, `${name()}${i ? `-${i + 1}` : ""}`)));
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "z" && !["INPUT", "TEXTAREA"].includes(document.activeElement.tagName)) {
      event.preventDefault();
      on.undo();
    }
  });
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
}
