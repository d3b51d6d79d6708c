// What the parts of the page share: where data comes from, what was loaded, and what is shown now.

import { readLink } from "./link.js";
import { openSource } from "./sources.js";

export const source = openSource();
export const state = readLink(); // what is chosen: the fields of the address

export const shared = {
  about: null, // runs, graph, relations
  entities: null, // {ids, names} in the order of their points
  place: null, // id → point
  disks: [], // one a run
  trees: [], // the hierarchy beside the disk, where it is shown
  hidden: new Set(), // colours that the legend has switched off
  levels: null, // of the norm, of the first run's points
  selected: [], // points that the reader has picked out
  look: null, // the colours
  questions: [], // of the question view, {before, after} a disk
  nearest: null, // to the middle of the map as the model says, a list a run
  note: "", // what the picture shows
  turn: 0, // counts choices: an answer to an older one is dropped
};

export const onMap = () => state.view === "map" || !state.entity;

export const question = () => ({ relation: state.relation, [state.direction === "tail" ? "head" : "tail"]: state.entity });

// One answer a run.
export const ofEveryRun = (ask) => Promise.all(shared.about.runs.map((_, i) => ask(i + 1)));

// Puts a ring around an entity, or around the chosen one, which in a question has its star.
export function mark(id = null) {
  const point = shared.place.get(id ?? state.entity);
  for (const tree of shared.trees) tree.mark(point === undefined ? [] : [point]);
  for (const disk of shared.disks) {
    const hidden = point === undefined || (disk.subject && id === null);
    disk.mark(hidden ? [] : [point]);
  }
}
