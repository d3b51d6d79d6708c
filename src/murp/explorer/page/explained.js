// What the page of a training or of a tree shows, in words.

import { $, element, plural } from "./dom.js";

const DISK = "The disk is a whole space, drawn small towards its rim: a step of the same length looks shorter the farther out it is made. Circles in it grow as fast as a tree gets wider, so that a tree has room.";

const LAYOUT = [
  DISK,
  "The root is in the middle, and every level stands as far from the one above it. Lines are shortest ways; those that look short near the rim are as long as those in the middle.",
  "Turn the curvature down to 0: the same tree in a flat space. The outer levels now share circles that are too small, strangers stand side by side, and those above an entity are no longer among the nearest (the mean rank). Turn it up, and branches move apart.",
  "The dimension shows Poincaré embeddings of the same tree, learned from its pairs of an entity and one above it. More dimensions than two are drawn in two: the distance from the middle is true, the angle is projected.",
];

const TRAINING = {
  poincare: [DISK, "Training begins with all entities in the middle and moves them until known facts are nearer than others. General entities tend to stay near the middle, special ones move outwards."],
  euclidean: ["This model lives in flat space, which is drawn into the disk too: far away is near the rim. Training moves entities until known facts are nearer than others."],
};

export function explainPicture({ geometry }, isLayout, entities) {
  const paragraphs = isLayout ? LAYOUT : TRAINING[geometry] ?? [];
  const drawn = `Every point is one of ${plural(entities, "entity", "entities")}; its colour says how far below the top of the hierarchy it stands.`;
  $("explained").replaceChildren(element("details", { open: true }, element("summary", {}, element("h2", {}, "What you see")),
    ...[drawn, ...paragraphs].map((text) => element("p", { class: "note" }, text))));
}
