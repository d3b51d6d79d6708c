// What of the picture is in the window: a magnification after an isometry. Geodesics stay geodesics under both.

import { carry, inside } from "./spaces.js";

export const CLOSEST = 64; // times
const KEPT = 0.5; // share of the window that stays on the side where the points are

// How far the points reach from the middle of their picture: all but a few.
export function reachOf(space, points) {
  const step = Math.max(1, Math.floor(points.length / 2 / 4000));
  const distances = [];
  for (let i = 0; i < points.length; i += 2 * step) {
    if (points[i] === points[i]) distances.push(space.fromMiddle(points[i], points[i + 1])); // not NaN
  }
  distances.sort((a, b) => a - b);
  return distances[Math.floor(0.97 * (distances.length - 1))] ?? 0;
}

// Where the middle of the window lies in the picture as it came, and how far from its middle.
export function middleOf(space, isometry) {
  const at = space.image(space.inverse(isometry), 0, 0);
  return { at, away: space.fromMiddle(...at) };
}

// The isometry itself, or the one that stops where half of the window would be empty. before: how far it was already
export function bounded(space, isometry, reach, zoom, before) {
  const { at, away } = middleOf(space, isometry);
  const window = Math.min(reach, space.fromMiddle(...space.undrawn(Math.min(1 / zoom, 0.999), 0)));
  const most = Math.max(reach - KEPT * window, before);
  if (!(away > most)) return isometry;
  const held = space.image(isometry, ...space.share(...at, most / away));
  return space.compose(space.toMiddle(...held), isometry);
}

// Moves what is seen at p to q, positions in the unit disk, as far as there is something to see.
export function draggedBy(disk, px, py, qx, qy) {
  const { space } = disk;
  const before = middleOf(space, disk.isometry).away;
  const carried = carry(space, ...space.undrawn(...inside(px, py)), ...space.undrawn(...inside(qx, qy)));
  return bounded(space, space.compose(carried, disk.isometry), disk.reach, disk.zoom, before);
}

// Magnifies by a factor; what is at (x, y) of the window, in its half widths, stays there.
export function zoomedAt(disk, x, y, factor) {
  const zoom = Math.min(CLOSEST, Math.max(1, disk.zoom * factor));
  const isometry = draggedBy({ ...viewOf(disk), zoom }, x / disk.zoom, y / disk.zoom, x / zoom, y / zoom);
  return { zoom, isometry };
}

const viewOf = ({ space, isometry, reach, zoom }) => ({ space, isometry, reach, zoom });
