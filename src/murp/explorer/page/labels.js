// Names on the picture: of the most important points in the window, none over another name or over a point that counts.

import { repeated } from "./names.js";

const LONGEST = 28; // letters of a name
const CELL = 46; // CSS pixels: of the points in a cell one counts
const EVERY = 13; // CSS pixels of width a name
const REACHES = [1, 2.2]; // gaps from a point to its name

// The points that count: the most important of every cell of the window. Points come by importance.
export function prominent(disk) {
  const { seen, zoom, named, width } = disk;
  const rim = (0.97 / zoom) ** 2;
  const cells = Math.max(4, Math.round(width / CELL));
  const taken = new Uint8Array((cells + 1) * (cells + 1));
  const cell = (x) => Math.floor(((1 + zoom * x) / 2) * cells);
  const found = [];
  for (let point = 0; point < Math.min(named, disk.classes.length); point += 1) {
    const [x, y] = [seen[2 * point], seen[2 * point + 1]];
    if (!(x * x + y * y < rim) || !disk.isShown(point)) continue;
    const at = cell(x) * (cells + 1) + cell(y);
    if (taken[at]) continue;
    taken[at] = 1;
    found.push(point);
  }
  return found;
}

// The points whose names are worth writing, the most important first.
export function labelled(disk) {
  if (!disk.picture.kinds) {
    const own = (disk.ownEdges ?? []).filter((point) => point < disk.named);
    return [...new Set([...disk.marks, ...own.slice(0, 80), ...prominent(disk)])];
  }
  const all = new Set([...disk.marks, ...answers(disk.classes, disk.ranked), ...disk.central(20)]);
  all.delete(disk.subject?.point); // whose name stands at the subject
  return [...all].filter((point) => point < (disk.named ?? Infinity));
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

// New, missed and known ones in turns, each from its best rank on; then those without a rank.
function answers(kinds, ranked) {
  const of = (kind) => {
    const found = new Set(ranked.filter((point) => kinds[point] === kind));
    for (let point = 0; point < kinds.length && found.size < 100; point += 1) if (kinds[point] === kind) found.add(point);
    return [...found];
  };
  const groups = [of(1), of(2), of(3)];
  const turns = Array.from({ length: Math.max(...groups.map((group) => group.length)) }, (_, i) => groups.map((group) => group[i]));
  return turns.flat().filter((point) => point !== undefined);
}

// Where names go: [{text, left, middle, width, height, from}] in canvas pixels. measure(text): its width
export function placed(disk, measure, height) {
  const { seen, sharpness, zoom } = disk;
  const half = disk.raster.size / 2;
  const at = (x, y) => [half + half * zoom * x, half - half * zoom * y];
  const subject = disk.subjectSeen();
  const points = disk.labels ?? [];
  const places = [subject && at(...subject), ...points.map((point) => at(seen[2 * point], seen[2 * point + 1]))];
  const dot = (disk.picture.kinds ? 3.6 : 3.2) * sharpness;
  const dots = places.filter(Boolean).map(([x, y]) => [x - dot, y - dot, 2 * dot, 2 * dot]);
  const most = Math.round(disk.width / EVERY);
  const gap = 6 * sharpness;
  const written = [];
  for (let i = subject ? 0 : 1; i < places.length && written.length < most; i += 1) {
    const [x, y] = places[i];
    if (disk.moving && i && !disk.atRest?.has(points[i - 1])) continue;
    if ((x - half) ** 2 + (y - half) ** 2 > half * half) continue;
    const width = measure(disk.texts[i]);
    const spot = spots(x, y, width, height, gap).find(([left, middle]) => {
      const box = [left - 1, middle - height * 0.6, width + 2, height * 1.2];
      return isInside(box, half) && written.every((other) => isApart(box, other.box)) && dots.every((other) => isApart(box, other));
    });
    if (!spot) continue;
    const box = [spot[0] - 1, spot[1] - height * 0.6, width + 2, height * 1.2];
    written.push({ point: i ? points[i - 1] : -1, text: disk.texts[i], left: spot[0], middle: spot[1], box, line: spot[2] ? [x, y, spot[3], spot[4]] : null });
  }
  if (!disk.moving) disk.atRest = new Set(written.map(({ point }) => point)); // in motion no other names are tried
  return written;
}

// [left, middle, is far, end of a line that leads there] around a point, the best first.
function spots(x, y, width, height, gap) {
  return REACHES.flatMap((reach, i) => {
    const [side, up, slant] = [gap * reach, height * 0.6 + gap * 0.6 * reach, gap * 0.75 * reach];
    return [
      [x + side, y, i, x + side - 2, y],
      [x - side - width, y, i, x - side + 2, y],
      [x - width / 2, y - up, i, x, y - up + height * 0.6],
      [x - width / 2, y + up, i, x, y + up - height * 0.6],
      [x + slant, y - up * 0.8, i, x + slant, y - up * 0.8],
      [x + slant, y + up * 0.8, i, x + slant, y + up * 0.8],
      [x - slant - width, y - up * 0.8, i, x - slant, y - up * 0.8],
      [x - slant - width, y + up * 0.8, i, x - slant, y + up * 0.8],
    ];
  });
}

const isApart = ([x, y, w, h], [u, v, p, q]) => x > u + p || u > x + w || y > v + q || v > y + h;

const isInside = ([x, y, w, h], half) =>
  [[x, y], [x + w, y], [x, y + h], [x + w, y + h]].every(([u, v]) => (u - half) ** 2 + (v - half) ** 2 <= half * half);
