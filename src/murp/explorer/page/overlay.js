// What lies above the dots: the edges of the chosen entity, the subject, points that count and names.

import { coloursOf, prominentRadius } from "./dots.js";
import { traceEdges } from "./geodesics.js";
import { placed } from "./labels.js";
import { letters } from "./presenting.js";

const EDGES_OF_ONE = 300; // drawn in full; a hub has more
const LETTERS = 12; // CSS pixels

export function drawOverlay(disk, look) {
  const { context, seen, sharpness, overlay } = disk;
  const size = disk.raster.size;
  if (overlay.width !== size) overlay.width = overlay.height = size;
  const half = size / 2;
  const unit = half * disk.zoom;
  context.clearRect(0, 0, size, size);
  context.save();
  context.beginPath();
  context.arc(half, half, half, 0, 2 * Math.PI);
  context.clip();
  if (disk.zoom > 1) drawRim(context, half, unit, look, sharpness);
  if (disk.edges && !disk.subject) {
    context.strokeStyle = look.accent;
    context.globalAlpha = 0.75;
    context.lineWidth = 1.3 * sharpness;
    context.beginPath();
    traceEdges(disk.space, disk.moved, disk.ownEdges ?? [], EDGES_OF_ONE, (path, length) => {
      context.moveTo(half + unit * path[0], half - unit * path[1]);
      for (let i = 1; i < length; i += 1) context.lineTo(half + unit * path[2 * i], half - unit * path[2 * i + 1]);
    });
    context.stroke();
    context.globalAlpha = 1;
  }
  if (!disk.picture.kinds && !disk.moving) drawProminent(disk, look, half, unit);
  context.restore();
  for (const point of disk.chosen ?? []) ring(context, seen, point, half, unit, look.subject, 5.5 * sharpness, 2 * sharpness);
  for (const point of disk.marks) ring(context, seen, point, half, unit, look.accent, 4.5 * sharpness, 1.6 * sharpness);
  if (disk.focused >= 0) ring(context, seen, disk.focused, half, unit, look.text, 6 * sharpness, 2 * sharpness);
  const subject = disk.subjectSeen();
  if (subject) star(context, half + unit * subject[0], half - unit * subject[1], 9 * sharpness, 1.5 * sharpness, look);
  if (disk.lasso) drawLasso(context, disk.lasso, half, unit, look, sharpness);
  writeNames(disk, look);
}

// The edges that begin or end at one of the points.
export function touching(edges, points) {
  const found = [];
  for (let i = 0; points.length && i < edges.length; i += 2) {
    if (points.includes(edges[i]) || points.includes(edges[i + 1])) found.push(edges[i], edges[i + 1]);
  }
  return found;
}

function drawRim(context, half, unit, look, sharpness) {
  context.strokeStyle = look.text;
  context.globalAlpha = 0.5;
  context.lineWidth = sharpness;
  context.beginPath();
  context.arc(half, half, unit, 0, 2 * Math.PI);
  context.stroke();
  context.globalAlpha = 1;
}

function drawLasso(context, lasso, half, unit, look, sharpness) {
  context.beginPath();
  lasso.forEach(([x, y], i) => context[i ? "lineTo" : "moveTo"](half + unit * x, half - unit * y));
  context.closePath();
  context.strokeStyle = look.subject;
  context.lineWidth = 1.5 * sharpness;
  context.setLineDash([4 * sharpness, 3 * sharpness]);
  context.stroke();
  context.setLineDash([]);
}

// The points that have names, or would have with more room, stand out from the crowd. In motion they are pixels below.
function drawProminent(disk, look, half, unit) {
  const { context, seen, classes, sharpness } = disk;
  const dot = prominentRadius(disk, sharpness);
  const { texts } = coloursOf(disk.picture, look);
  context.strokeStyle = look.halo;
  context.lineWidth = sharpness;
  for (const point of disk.labels ?? []) {
    context.fillStyle = texts[classes[point] & 7];
    context.beginPath();
    context.arc(half + unit * seen[2 * point], half - unit * seen[2 * point + 1], dot, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
  }
}

function ring(context, seen, point, half, unit, colour, radius, width) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.arc(half + unit * seen[2 * point], half - unit * seen[2 * point + 1], radius, 0, 2 * Math.PI);
  context.stroke();
}

function star(context, x, y, radius, width, look) {
  context.beginPath();
  for (let i = 0; i < 10; i += 1) {
    const [length, angle] = [i % 2 ? radius * 0.45 : radius, (i * Math.PI) / 5];
    context.lineTo(x + length * Math.sin(angle), y - length * Math.cos(angle));
  }
  context.closePath();
  context.fillStyle = look.subject;
  context.strokeStyle = look.halo;
  context.lineWidth = width;
  context.fill();
  context.stroke();
}

function writeNames(disk, look) {
  const { context, sharpness } = disk;
  const height = LETTERS * sharpness * letters();
  context.font = `${height}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.lineJoin = "round";
  disk.written = placed(disk, (text) => disk.widthOf(text, height, context), height);
  context.strokeStyle = look.edgeText;
  context.lineWidth = sharpness;
  context.beginPath();
  for (const { line } of disk.written) {
    if (!line) continue;
    context.moveTo(line[0], line[1]);
    context.lineTo(line[2], line[3]);
  }
  context.stroke();
  context.strokeStyle = look.halo;
  context.fillStyle = look.text;
  context.lineWidth = 3.5 * sharpness;
  for (const { text, left, middle } of disk.written) {
    context.strokeText(text, left, middle);
    context.fillText(text, left, middle);
  }
}
