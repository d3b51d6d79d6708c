// What colours and positions mean.

import { $, count, element } from "./dom.js";
import { isModel } from "./near.js";
import { shared } from "./shared.js";

const KINDS = ["true negative", "false positive", "false negative", "true positive"];
const POSITIVE = "Positive: the model's own probability is at least ½; true or false: whether the stated facts agree.";

export function levelLegend() {
  const levels = Array.from({ length: 8 }, (_, i) => element("i", { class: `level-${i}` }));
  const ramp = element("span", { class: "ramp", "aria-hidden": "true" }, ...levels);
  $("legend").replaceChildren(element("li", {}, "small norm ", ramp, " large norm"));
}

// counts: of every run, by kind
export function questionLegend(counts) {
  const kinds = KINDS.map((kind, n) => {
    const numbers = counts.map((of) => count(of[kind])).join(" / ");
    return element("li", {}, element("i", { class: `kind-${n}` }), `${kind}: ${numbers}`);
  });
  $("legend").replaceChildren(element("li", {}, element("span", { class: "star", "aria-hidden": "true" }, "★"), "the entity asked about"), ...kinds);
}

export function questionNote(projection) {
  return projection === "paper"
    ? `The paper's projection: across, the component along the entity asked about; up, all the rest. ${POSITIVE}`
    : `The distance from the middle is the true distance from the entity asked about, the angle is projected. ${POSITIVE}`;
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
