// The view as the part of the address after #, so that a link restores it.

import { CLOSEST } from "./view.js";

const MOST_RUNS = 4;
const ofRuns = (name) => Array.from({ length: MOST_RUNS }, (_, i) => `${name}${i + 1}`);
const WINDOWS = Object.fromEntries([...ofRuns("drag"), ...ofRuns("zoom")].map((name) => [name, ""]));

const DEFAULTS = {
  entity: "", relation: "", direction: "tail", view: "map", edges: "1", projection: "distances", moment: "100",
  ...WINDOWS, colour: "norm", size: "", tree: "0",
};
const STEPS_BACK = ["entity", "relation", "direction", "view"]; // what the browser's Back undoes
const ROUNDED = 2e-5; // what rounding may make of |a|² - |b|², a unit of |a| + |b|

const fields = () => new URLSearchParams(location.hash.slice(1));

// Forgets drags and zooms.
export const undrag = (link) => Object.assign(link, WINDOWS);

// Whether the address is one of ours: "#panel" is not, an empty one is the beginning.
export const isView = () => location.hash.length < 2 || Object.keys(DEFAULTS).some((name) => fields().has(name));

export function readLink() {
  const given = fields();
  const link = { ...DEFAULTS };
  for (const name of Object.keys(DEFAULTS)) if (given.has(name)) link[name] = given.get(name).slice(0, 500);
  if (!["tail", "head"].includes(link.direction)) link.direction = "tail";
  if (!["map", "question"].includes(link.view)) link.view = "map";
  if (!["distances", "paper"].includes(link.projection)) link.projection = "distances";
  for (const name of ofRuns("zoom")) link[name] = packZoom(Number(link[name]) || 1);
  link.tree = link.tree === "1" ? "1" : "0";
  link.moment = String(Math.min(100, Math.max(0, Number.parseInt(link.moment, 10) || 0)));
  return link;
}

// A choice is a step that Back undoes; a drag is none, and where a link was followed there is one already.
export function writeLink(chosen, { followed = false } = {}) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(DEFAULTS)) if (chosen[name] !== value) given.set(name, chosen[name]);
  const hash = given.toString();
  const address = hash ? `#${hash}` : location.pathname + location.search;
  const now = readLink();
  if (!followed && STEPS_BACK.some((name) => now[name] !== chosen[name])) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}

// An isometry and its reflection as text, nothing for the identity; and back, null where the text is none.
export function packDrag(isometry, flip) {
  const numbers = [...isometry.map((x) => Number(x.toFixed(5))), flip ? 1 : 0];
  return [1, 0, 0, 0, 0].every((x, i) => x === numbers[i]) ? "" : numbers.join(",");
}

export const packZoom = (zoom) => (zoom > 1.001 ? String(Number(Math.min(zoom, CLOSEST).toFixed(3))) : "");

// What a link says of the window on run i: {isometry, flip, zoom}, or null where it says nothing.
export function unpackWindow(link, i, space) {
  const drag = unpackDrag(link[`drag${i + 1}`], space);
  const zoom = Number(link[`zoom${i + 1}`]) || 1;
  return drag || zoom > 1 ? { isometry: drag?.isometry ?? space.identity(), flip: drag?.flip ?? false, zoom } : null;
}

export function unpackDrag(text, space) {
  const numbers = text.split(",").map(Number);
  if (numbers.length !== 5 || !numbers.every((x) => Number.isFinite(x) && Math.abs(x) < 1e4)) return null;
  const isometry = numbers.slice(0, 4);
  const size = Math.hypot(isometry[0], isometry[1]) + Math.hypot(isometry[2], isometry[3]);
  if (Math.abs(space.determinant(isometry) - 1) > ROUNDED * (1 + size)) return null;
  return { isometry, flip: numbers[4] === 1 };
}
