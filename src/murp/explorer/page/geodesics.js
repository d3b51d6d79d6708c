// Edges as geodesics: arcs that meet the rim at right angles in the Poincaré disk, straight lines of the plane
// as they look when the plane is drawn in the disk. Both are traced by short straight pieces.

import { euclidean } from "./spaces.js";

const MOST_PIECES = 24;
const FLATTENED = 0.001; // of the disk's radius: how far a straight piece may be from its arc
const LONGEST_PIECE = 0.12; // of a line of the plane
const COUNTED = 6000; // edges
const AT_A_TIME = 256; // edges between two looks at the clock
const traced = new Float32Array(2 * MOST_PIECES + 2);

// Writes positions in the unit disk along the geodesic from (px, py) to (qx, qy) into `out`; how many.
function traceArc(px, py, qx, qy, out) {
  const p = 1 + px * px + py * py;
  const q = 1 + qx * qx + qy * qy;
  const twice = 2 * (px * qy - py * qx);
  const cx = (p * qy - q * py) / twice;
  const cy = (q * px - p * qx) / twice;
  const square = Math.max(cx * cx + cy * cy - 1, 1e-12); // of the circle's radius
  const chord = (px - qx) * (px - qx) + (py - qy) * (py - qy);
  let last = 1;
  // A chord c of a circle of radius r leaves it by c²/8r; through the middle the circle is a line.
  if (square < 1e6 && chord * chord > 64 * FLATTENED * FLATTENED * square) {
    const radius = Math.sqrt(square);
    const turn = 2 * Math.asin(Math.min(1, Math.sqrt(chord) / (2 * radius))); // less than half a circle, as every geodesic
    last = Math.min(MOST_PIECES, Math.ceil(turn * Math.sqrt(radius / (8 * FLATTENED))));
    const [cos, sin] = [Math.cos(turn / last), Math.sin(turn / last) * (twice < 0 ? 1 : -1)];
    let x = px - cx;
    let y = py - cy;
    for (let i = 1; i < last; i += 1) {
      [x, y] = [x * cos - y * sin, x * sin + y * cos];
      out[2 * i] = cx + x;
      out[2 * i + 1] = cy + y;
    }
  }
  out[0] = px;
  out[1] = py;
  out[2 * last] = qx;
  out[2 * last + 1] = qy;
  return last + 1;
}

function traceLine(px, py, qx, qy, out) {
  const pieces = Math.min(MOST_PIECES, 1 + Math.ceil(Math.hypot(px - qx, py - qy) / LONGEST_PIECE));
  for (let i = 0; i <= pieces; i += 1) {
    const x = px + (i / pieces) * (qx - px);
    const y = py + (i / pieces) * (qy - py);
    const scale = 1 / (1 + Math.hypot(x, y));
    out[2 * i] = x * scale;
    out[2 * i + 1] = y * scale;
  }
  return pieces + 1;
}

// Calls draw(positions, count) for the edges [from0, to0, from1, to1, …] between moved points; of more than `most`
// for those that begin or end nearest to the middle. Begins at the place `from` and stops when the clock has passed
// `until`; the place it came to. skip(a, b): edges that are not drawn
export function traceEdges(space, points, edges, most, draw, from = 0, until = Infinity, skip = null) {
  const trace = space === euclidean ? traceLine : traceArc;
  const limit = edges.length / 2 > most ? nearestEnds(points, edges, most) : Infinity;
  let drawn = 0;
  for (let i = from; i < edges.length; i += 2) {
    const a = 2 * edges[i];
    const b = 2 * edges[i + 1];
    const px = points[a];
    const py = points[a + 1];
    const qx = points[b];
    const qy = points[b + 1];
    if (px * px + py * py > limit && qx * qx + qy * qy > limit) continue;
    if (skip?.(edges[i], edges[i + 1])) continue;
    draw(traced, trace(px, py, qx, qy, traced));
    drawn += 1;
    if (drawn % AT_A_TIME === 0 && performance.now() > until) return i + 2;
  }
  return edges.length;
}

// The squared distance from the middle within which at most `most` edges have an end, of very many about so many: by
// counting some, not by sorting all.
function nearestEnds(points, edges, most) {
  const counts = new Uint32Array(256);
  const every = Math.max(1, Math.floor(edges.length / 2 / COUNTED));
  for (let i = 0; i < edges.length; i += 2 * every) {
    const a = 2 * edges[i];
    const b = 2 * edges[i + 1];
    const square = Math.min(points[a] ** 2 + points[a + 1] ** 2, points[b] ** 2 + points[b + 1] ** 2);
    counts[Math.min(255, Math.floor((256 * square) / (1 + square)))] += 1;
  }
  let sum = 0;
  let bucket = 0;
  while (bucket < 255 && sum + every * counts[bucket] <= most) {
    sum += every * counts[bucket];
    bucket += 1;
  }
  return bucket / (256 - bucket);
}
