// What colours and positions mean. A colour is a button that hides its points and shows them again.

import { colourLabels } from "./colouring.js";
import { $, count, element } from "./dom.js";
import { isModel } from "./near.js";
import { shared } from "./shared.js";

const KINDS = ["other", "new", "missed", "known"];
const MEANING = "Known: in the graph and likely; new: likely and not in the graph, which may well be true; missed: in the graph and not likely. Likely: the model's own probability is at least ½.";

// A colour of the legend; toggled(): its points are hidden or shown
function entry(colour, text, hidden, toggled) {
  const button = element(
    "button", { type: "button", class: "entry", "aria-pressed": String(!hidden.has(colour.at)), title: "hide or show" },
    element("i", { class: colour.name }), text,
  );
  button.addEventListener("click", () => {
    if (!hidden.delete(colour.at)) hidden.add(colour.at);
    button.setAttribute("aria-pressed", String(!hidden.has(colour.at)));
    toggled();
  });
  return element("li", {}, button);
}

const repaint = (hidden) => () => {
  for (const disk of [...shared.disks, ...shared.trees]) disk.recolour(disk.classes, hidden, disk.picture.colouring);
};

export function colourLegend() {
  const { name, labels, isCategory } = colourLabels();
  const toggled = repaint(shared.hidden);
  $("legend").replaceChildren(
    element("li", {}, `${name}:`),
    ...labels.map((label, n) => entry({ at: n, name: `${isCategory ? "group" : "level"}-${n}` }, label, shared.hidden, toggled)),
  );
}

// counts: of every run, by kind
export function questionLegend(counts) {
  const hidden = new Set();
  const toggled = () => { for (const disk of shared.disks) disk.recolour(disk.classes, hidden); };
  const kinds = KINDS.map((kind, n) =>
    entry({ at: n, name: `kind-${n}` }, `${kind}: ${counts.map((of) => count(of[kind])).join(" / ")}`, hidden, toggled));
  $("legend").replaceChildren(element("li", {}, element("span", { class: "star", "aria-hidden": "true" }, "★"), "the entity asked about"), ...kinds.reverse());
}

export function questionNote(projection) {
  return projection === "paper"
    ? `The paper's projection: across, the component along the entity asked about; up, all the rest. ${MEANING}`
    : `The distance from the middle is the true distance from the entity asked about, the angle is projected. ${MEANING}`;
}

// What a drag has done to the picture of a run.
function movedNote(run) {
  const how = run.geometry === "poincare" ? "a Möbius translation" : "a plain translation";
  return isModel(run)
    ? `Moved since by ${how}: distances from the new middle are still the model's.`
    : `Moved since by ${how} of the picture: distances from the new middle are the picture's, not the model's.`;
}

// What the picture shows, and that a drag has made its middle another one.
export function writeNote() {
  const { about, disks, note } = shared;
  const moved = about.runs.filter((_, i) => disks[i].isMoved());
  const several = about.runs.length > 1;
  $("projection-note").textContent = [note, ...moved.map((run) => (several ? `${run.title}: ` : "") + movedNote(run))].join(" ");
}
