// What colours and positions mean.

import { $, count, element } from "./dom.js";

const KINDS = ["true negative", "false positive", "false negative", "true positive"];
const POSITIVE = "Positive: the model's own probability is at least ½; true: a stated fact.";
const MOVED =
  "Moved since by a Möbius translation of the picture (in Euclidean space by a plain one): distances from the new middle are the picture's, not the model's.";

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
  $("legend").replaceChildren(element("li", {}, element("i", { class: "subject" }), "subject"), ...kinds);
}

export function questionNote(projection) {
  return projection === "paper"
    ? `The paper's projection: across, the component along the subject; up, all the rest. ${POSITIVE}`
    : `The distance from the middle is the true distance from the subject, the angle is projected. ${POSITIVE}`;
}

// What the picture shows, and that a drag has made its middle another one.
export function writeNote(note, isMoved) {
  $("projection-note").textContent = isMoved ? `${note} ${MOVED}` : note;
}
