// Edges as geodesics: arcs that meet the rim at right angles in the Poincaré disk, straight lines of the plane
// as they look when the plane is drawn in the disk. Both are traced by short straight pieces.

import { euclidean } from "./spaces.js";

const MOST_PIECES = 24;
const LONGEST_PIECE = 0.06; // of the disk's radius

// Writes positions in the unit disk along the geodesic from (px, py) to (qx, qy) into `out`; how many.
function traceArc(px, py, qx, qy, out) {
  const p = 1 + px * px + py * py;
  const q = 1 + qx * qx + qy * qy;
  const twice = 2 * (px * qy - py * qx);
  const cx = (p * qy - q * py) / twice;
  const cy = (q * px - p * qx) / twice;
  const radius = Math.sqrt(cx * cx + cy * cy - 1);
  const chord = Math.hypot(px - qx, py - qy);
  const straight = !(radius < 1e3) || (chord * chord) / (8 * radius) < 0.001; // through the middle, or as good as
  const pieces = straight ? 1 : Math.min(MOST_PIECES, Math.ceil(chord / LONGEST_PIECE));
  const begin = Math.atan2(py - cy, px - cx);
  let turn = Math.atan2(qy - cy, qx - cx) - begin;
  if (turn > Math.PI) turn -= 2 * Math.PI;
  if (turn < -Math.PI) turn += 2 * Math.PI;
  out[0] = px;
  out[1] = py;
  for (let i = 1; i < pieces; i += 1) {
    const angle = begin + (turn * i) / pieces;
    out[2 * i] = cx + radius * Math.cos(angle);
    out[2 * i + 1] = cy + radius * Math.sin(angle);
  }
  out[2 * pieces] = qx;
  out[2 * pieces + 1] = qy;
  return pieces + 1;
}

function traceLine(px, py, qx, qy, out) {
  const pieces = Math.min(MOST_PIECES, 1 + Math.ceil(Math.hypot(px - qx, py - qy) / (2 * LONGEST_PIECE)));
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
// for those that begin or end nearest to the middle.
export function traceEdges(space, points, edges, most, draw) {
  const trace = space === euclidean ? traceLine : traceArc;
  const limit = edges.length / 2 > most ? nearestEnds(points, edges, most) : Infinity;
  const out = new Float32Array(2 * MOST_PIECES + 2);
  for (let i = 0; i < edges.length; i += 2) {
    const a = 2 * edges[i];
    const b = 2 * edges[i + 1];
    const [px, py, qx, qy] = [points[a], points[a + 1], points[b], points[b + 1]];
    if (Math.min(px * px + py * py, qx * qx + qy * qy) <= limit) draw(out, trace(px, py, qx, qy, out));
  }
}

// The squared distance from the middle within which at most `most` edges have an end; by counting, not by sorting.
function nearestEnds(points, edges, most) {
  const counts = new Uint32Array(256);
  for (let i = 0; i < edges.length; i += 2) {
    const a = 2 * edges[i];
    const b = 2 * edges[i + 1];
    const square = Math.min(points[a] ** 2 + points[a + 1] ** 2, points[b] ** 2 + points[b + 1] ** 2);
    counts[Math.min(255, Math.floor((256 * square) / (1 + square)))] += 1;
  }
  let sum = 0;
  let bucket = 0;
  while (bucket < 255 && sum + counts[bucket] <= most) {
    sum += counts[bucket];
    bucket += 1;
  }
  return bucket / (256 - bucket);
}
