// The view as the part of the address after #, so that a link restores it.

const DEFAULTS = {
  entity: "", relation: "", direction: "tail", view: "map", edges: "1", projection: "distances", moment: "100",
  drag1: "", drag2: "",
};

export function readLink() {
  const given = new URLSearchParams(location.hash.slice(1));
  const state = { ...DEFAULTS };
  for (const name of Object.keys(DEFAULTS)) if (given.has(name)) state[name] = given.get(name).slice(0, 500);
  if (!["tail", "head"].includes(state.direction)) state.direction = "tail";
  if (!["map", "question"].includes(state.view)) state.view = "map";
  if (!["distances", "paper"].includes(state.projection)) state.projection = "distances";
  state.moment = String(Math.min(100, Math.max(0, Number.parseInt(state.moment, 10) || 0)));
  return state;
}

export function writeLink(state) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(DEFAULTS)) if (state[name] !== value) given.set(name, state[name]);
  const hash = given.toString();
  history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
}

// An isometry and its reflection as text, and back; null where the text is none.
export function packDrag(isometry, flip) {
  return [...isometry.map((x) => Number(x.toFixed(5))), flip ? 1 : 0].join(",");
}

export function unpackDrag(text) {
  const numbers = text.split(",").map(Number);
  const whole = numbers.length === 5 && numbers.every((x) => Number.isFinite(x) && Math.abs(x) < 1e4);
  return whole ? { isometry: numbers.slice(0, 4), flip: numbers[4] === 1 } : null;
}
