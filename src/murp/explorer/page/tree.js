// The hierarchy beside the disk: parents by the relation, depth by the norm, linked to the disk by what is chosen.

import { coloured } from "./colouring.js";
import { $, count, element, table } from "./dom.js";
import { onMap, shared, source, state } from "./shared.js";
import { unpack } from "./sources.js";

const CHILDREN = 20; // in the table

let grown = null; // {points, parents, inside, below} of the first run

// Shows or hides the tree as the state says. make(title): a disk for it
export async function showTree(make) {
  const wanted = state.tree === "1" && shared.about.hierarchy !== null && onMap();
  $("tree-figure")?.toggleAttribute("hidden", !wanted);
  $("tree-table").hidden = !wanted;
  if (!wanted) {
    shared.trees = [];
    return;
  }
  if (!grown) {
    const answer = await source.tree(1);
    grown = { name: answer.relation.name, points: unpack(answer.points), parents: unpack(answer.parents), inside: unpack(answer.inside), below: unpack(answer.below) };
    for (let i = 0; i < grown.inside.length; i += 1) if (!grown.inside[i]) grown.points.fill(NaN, 2 * i, 2 * i + 2); // nowhere
    const edges = [];
    grown.parents.forEach((parent, i) => { if (parent !== i && grown.inside[i]) edges.push(parent, i); });
    grown.edges = Uint32Array.from(edges);
    grown.disk = make(`The tree of ${grown.name}: norm outwards`);
  }
  const { disk } = grown;
  shared.trees = [disk];
  disk.edges = grown.edges;
  const { classes, colouring, hidden } = coloured(shared.levels, 0);
  if (!disk.picture) disk.show({ points: grown.points, classes, colouring, hidden, kinds: false });
  else disk.recolour(classes, hidden, colouring);
  const point = shared.place.get(state.entity);
  if (point !== undefined && grown.inside[point]) await disk.glideTo(point);
  disk.mark(point === undefined || !grown.inside[point] ? [] : [point]);
}

// The chosen entity's place in the tree as a table: what stands above it and below it.
export function writeTree(choose) {
  if (!grown || $("tree-table").hidden) return;
  const point = shared.place.get(state.entity);
  const { ids, names } = shared.entities;
  const row = (what, i) => element("tr", {}, element("td", {}, what),
    element("td", {}, element("button", { type: "button", class: "name", title: ids[i], onclick: () => choose(ids[i]) }, names[i])),
    element("td", { class: "number" }, count(grown.below[i] - 1)));
  const rows = [];
  let tops = [];
  if (point !== undefined && grown.inside[point]) {
    const above = [];
    for (let i = point; grown.parents[i] !== i; i = grown.parents[i]) above.push(grown.parents[i]);
    above.reverse().forEach((i, depth) => rows.push(row(`level ${depth}`, i)));
    rows.push(row("chosen", point));
    tops = childrenOf(point);
  } else {
    tops = [...grown.parents.keys()].filter((i) => grown.inside[i] && grown.parents[i] === i);
  }
  tops.sort((a, b) => grown.below[b] - grown.below[a]);
  tops.slice(0, CHILDREN).filter((i) => i < ids.length).forEach((i) => rows.push(row(point === undefined ? "top" : "below", i)));
  $("tree-table").replaceChildren(element("h2", {}, `The tree of ${grown.name} as a table`),
    table(`The tree of ${grown.name}`, ["level", "entity", "entities below"], rows));
}

function childrenOf(point) {
  const found = [];
  grown.parents.forEach((parent, i) => { if (parent === point && i !== point && grown.inside[i]) found.push(i); });
  return found;
}
