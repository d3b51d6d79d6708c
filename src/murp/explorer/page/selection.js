// Entities picked out with a lasso (Shift and drag), one by one (Shift and click, or x), to compare and to keep.

import { $, count, element, figure, plural, table } from "./dom.js";
import { saveTable } from "./download.js";
import { named, unseen } from "./panels.js";
import { shared, source } from "./shared.js";

const SHOWN = 50; // in the table
let hooks = null;

export function startSelection(choose, mark) {
  hooks = { choose, mark };
}

// One more, or one less where it is in already; several take the place of those before.
export function select(points) {
  const [first] = points;
  if (points.length !== 1) shared.selected = points;
  else if (shared.selected.includes(first)) shared.selected = shared.selected.filter((point) => point !== first);
  else shared.selected = [...shared.selected, first];
  for (const disk of [...shared.disks, ...shared.trees]) {
    disk.chosen = shared.selected.slice(0, 500);
    disk.ask();
  }
  write();
}

async function write() {
  const chosen = shared.selected;
  const { ids, names } = shared.entities;
  if (!chosen.length) {
    $("selection").replaceChildren();
    return;
  }
  const shown = chosen.slice(0, SHOWN).map((point) => ({ id: ids[point], name: names[point] }));
  const cards = await Promise.all(shown.map(({ id }) => source.entity(id, 1).catch(() => null)));
  if (chosen !== shared.selected) return;
  const buttons = named(shown, hooks.choose);
  const rows = shown.map((one, i) => element("tr", { onpointerenter: () => hooks.mark(one.id), onpointerleave: () => hooks.mark(null) },
    element("td", {}, buttons[i]), element("td", { class: "number" }, figure(cards[i]?.norm)), element("td", { class: "number" }, cards[i] ? count(factsOf(cards[i])) : "–")));
  $("selection").replaceChildren(
    element("h2", {}, `Selected: ${plural(chosen.length, "entity", "entities")}`),
    element("p", {},
      element("button", { type: "button", onclick: () => saveSelected(chosen) }, "Save as a table"), " ",
      element("button", { type: "button", onclick: () => select([]) }, "Clear")),
    table("Selected entities", ["entity", "norm", "facts"], rows),
    chosen.length > SHOWN ? element("p", { class: "note" }, `and ${count(chosen.length - SHOWN)} more`) : unseen(""),
  );
}

const factsOf = (card) => card.known_facts.reduce((sum, group) => sum + group.total, 0);

function saveSelected(chosen) {
  const { ids, names } = shared.entities;
  saveTable([["id", "name"], ...chosen.map((point) => [ids[point], names[point]])], `${shared.about.graph.name}-selected`.replace(/[^\w.-]+/g, "_"));
}
