// Which colour and size every point has: by its norm, or by a column that the reader chose.

import { COLOURS } from "./dots.js";
import { shared, source, state } from "./shared.js";
import { unpack } from "./sources.js";

const loaded = new Map(); // column → {values, labels} a run

// Loads what the state asks for, so that `coloured` has it. Unknown columns of a link are forgotten.
export async function loadColumns() {
  const { columns } = shared.about;
  for (const what of ["colour", "size"]) {
    const column = columns.find(({ name }) => name === state[what]);
    if (state[what] && state[what] !== "norm" && !column) state[what] = what === "colour" ? "norm" : "";
    if (!column) continue;
    for (let i = 0; i < shared.about.runs.length; i += 1) {
      const key = `${column.name} ${i}`;
      if (loaded.has(key)) continue;
      const answer = await source.column(column.name, i + 1);
      loaded.set(key, { classes: unpack(answer.classes), labels: answer.labels, isCategory: answer.is_category });
    }
  }
}

const column = (what, i) => (state[what] ? loaded.get(`${state[what]} ${i}`) : undefined);

// {classes, colouring, hidden} of run i; levels: of the norm
export function coloured(levels, i) {
  const colours = column("colour", i);
  const sizes = column("size", i);
  const hidden = new Set(shared.hidden);
  if (!colours && !sizes) return { classes: levels, colouring: null, hidden };
  const classes = new Uint8Array(levels.length);
  for (let point = 0; point < classes.length; point += 1) {
    const size = sizes ? Math.floor((4 * sizes.classes[point]) / sizes.labels.length) : 0;
    classes[point] = (colours ? colours.classes[point] : levels[point]) + COLOURS * size;
  }
  return { classes, colouring: colours ?? null, hidden };
}

// What the colours mean: {name, labels}
export function colourLabels() {
  const colours = column("colour", 0);
  if (colours) return { name: state.colour, labels: colours.labels, isCategory: colours.isCategory };
  return { name: "norm", labels: shared.levelLabels ?? Array.from({ length: 8 }, (_, n) => `${n + 1}/8`), isCategory: false };
}
