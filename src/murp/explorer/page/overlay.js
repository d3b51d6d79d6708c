// What lies above the dots: the edges of the chosen entity, the subject, marked points and names that do not cover each other.

import { traceEdges } from "./geodesics.js";
import { repeated } from "./names.js";

const EDGES_OF_ONE = 300; // drawn in full; a hub has more
const LONGEST = 28; // letters of a name

export function drawOverlay(disk, look) {
  const { context, seen, sharpness, overlay } = disk;
  const size = disk.raster.size;
  if (overlay.width !== size) overlay.width = overlay.height = size;
  const half = size / 2;
  context.clearRect(0, 0, size, size);
  context.save();
  context.beginPath();
  context.arc(half, half, half, 0, 2 * Math.PI);
  context.clip();
  if (disk.edges && !disk.subject) {
    context.strokeStyle = look.accent;
    context.globalAlpha = 0.75;
    context.lineWidth = 1.3 * sharpness;
    context.beginPath();
    traceEdges(disk.space, disk.moved, disk.ownEdges ?? [], EDGES_OF_ONE, (path, length) => {
      context.moveTo(half + half * path[0], half - half * path[1]);
      for (let i = 1; i < length; i += 1) context.lineTo(half + half * path[2 * i], half - half * path[2 * i + 1]);
    });
    context.stroke();
    context.globalAlpha = 1;
  }
  context.restore();
  for (const point of disk.marks) ring(context, seen, point, half, look.accent, 4.5 * sharpness, 1.6 * sharpness);
  if (disk.focused >= 0) ring(context, seen, disk.focused, half, look.text, 6 * sharpness, 2 * sharpness);
  const subject = disk.subjectSeen();
  if (subject) star(context, half + half * subject[0], half - half * subject[1], 9 * sharpness, 1.5 * sharpness, look);
  writeNames(disk, look, half);
}

// The edges that begin or end at one of the points.
export function touching(edges, points) {
  const found = [];
  for (let i = 0; points.length && i < edges.length; i += 2) {
    if (points.includes(edges[i]) || points.includes(edges[i + 1])) found.push(edges[i], edges[i + 1]);
  }
  return found;
}

function ring(context, seen, point, half, colour, radius, width) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.arc(half + half * seen[2 * point], half - half * seen[2 * point + 1], radius, 0, 2 * Math.PI);
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

// The points whose names are worth writing, the most important first.
export function labelled(disk) {
  if (!disk.picture.kinds) return [...new Set([...disk.marks, ...disk.central(60)])];
  const all = new Set([...disk.marks, ...answers(disk.classes, disk.ranked), ...disk.central(20)]);
  all.delete(disk.subject?.point); // whose name stands at the subject
  return [...all];
}

// Which points are labelled and what is written, first at the subject. A name of several goes with its id.
export function labelling(disk) {
  const { ids, names } = disk.entities;
  const labels = labelled(disk);
  const all = [disk.subject ?? { id: "", name: "" }, ...labels.map((point) => ({ id: ids[point], name: names[point] }))];
  const several = repeated(all.map(({ name }) => name));
  return { labels, texts: all.map(({ id, name }) => shortened(name) + (several.has(name) ? ` (${shortened(id)})` : "")) };
}

const shortened = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);

// True and false positives in turns, each from its best rank on; then those without a rank, and what was missed.
function answers(kinds, ranked) {
  const of = (kind) => {
    const found = new Set(ranked.filter((point) => kinds[point] === kind));
    for (let point = 0; point < kinds.length && found.size < 100; point += 1) if (kinds[point] === kind) found.add(point);
    return [...found];
  };
  const [wrong, missed, right] = [of(1), of(2), of(3)];
  const turns = Array.from({ length: Math.max(right.length, wrong.length) }, (_, i) => [right[i], wrong[i]]);
  return [...turns.flat().filter((point) => point !== undefined), ...missed];
}

function writeNames(disk, look, half) {
  const { context, seen, sharpness } = disk;
  const height = 12 * sharpness;
  context.font = `${height}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.lineJoin = "round";
  const taken = [];
  const subject = disk.subjectSeen();
  const places = [subject, ...(disk.labels ?? []).map((point) => [seen[2 * point], seen[2 * point + 1]])];
  const most = Math.round(disk.width / 20);
  for (let i = subject ? 0 : 1; i < places.length && taken.length < most; i += 1) {
    const [text, [px, py]] = [disk.texts[i], places[i]];
    const width = context.measureText(text).width;
    const [x, y] = [half + half * px, half - half * py];
    const gap = 7 * sharpness;
    const spot = [[x + gap, y], [x - gap - width, y], [x - width / 2, y - 1.3 * height], [x - width / 2, y + 1.3 * height]].find(
      ([left, middle]) => fits(taken, left, middle - height * 0.6, width, height * 1.2, half),
    );
    if (!spot) continue;
    taken.push([spot[0], spot[1] - height * 0.6, width, height * 1.2]);
    context.strokeStyle = look.halo;
    context.lineWidth = 3.5 * sharpness;
    context.strokeText(text, ...spot);
    context.fillStyle = look.text;
    context.fillText(text, ...spot);
  }
}

function fits(taken, left, top, width, height, half) {
  const corners = [[left, top], [left + width, top], [left, top + height], [left + width, top + height]];
  if (corners.some(([x, y]) => (x - half) ** 2 + (y - half) ** 2 > half * half)) return false;
  return taken.every(([x, y, w, h]) => left > x + w || x > left + width || top > y + h || y > top + height);
}
