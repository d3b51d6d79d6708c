// The picture as a file: PNG of the pixels, SVG of points, geodesics and names.

import { announce, element } from "./dom.js";
import { coloursOf } from "./dots.js";
import { traceEdges } from "./geodesics.js";

const MOST_DOTS = 6000; // in an SVG, the most important ones
const MOST_EDGES = 3000;
const DRAWN_SIDE = 1000; // of an SVG

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = element("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
  announce(`${name} saved`);
}

// A canvas with the dots, the names and the rim of a disk, and a title above.
export function drawnOn(disk, title, look) {
  const { dots, overlay } = disk;
  const size = dots.width;
  const above = Math.round(size * 0.06);
  const canvas = element("canvas", { width: size, height: size + above });
  const context = canvas.getContext("2d");
  context.fillStyle = look.page;
  context.fillRect(0, 0, size, size + above);
  context.fillStyle = look.text;
  context.font = `${Math.round(above * 0.5)}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(title, size / 2, above / 2, size);
  context.save();
  context.beginPath();
  context.arc(size / 2, above + size / 2, size / 2 - 1, 0, 2 * Math.PI);
  context.clip();
  context.drawImage(dots, 0, above);
  context.drawImage(overlay, 0, above);
  context.restore();
  context.strokeStyle = look.text;
  context.beginPath();
  context.arc(size / 2, above + size / 2, size / 2 - 1, 0, 2 * Math.PI);
  context.stroke();
  return canvas;
}

export async function savePng(disk, title, look, name) {
  const blob = await new Promise((done) => drawnOn(disk, title, look).toBlob(done, "image/png"));
  save(blob, `${name}.png`);
}

const escaped = (text) => text.replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter]);
const number = (value) => Number(value.toFixed(1));

// The same as text that a drawing program opens.
export function svgOf(disk, title, look) {
  const half = DRAWN_SIDE / 2;
  const unit = half * disk.zoom;
  const at = (x, y) => [number(half + unit * x), number(half - unit * y)];
  const isSeen = (x, y) => x * x + y * y < (1 / disk.zoom) ** 2;
  const parts = [];
  if (disk.edges && !disk.subject) {
    const lines = [];
    traceEdges(disk.space, disk.moved, disk.edges, MOST_EDGES, (path, length) => {
      if (!isSeen(path[0], path[1]) && !isSeen(path[2 * length - 2], path[2 * length - 1])) return;
      const places = Array.from({ length }, (_, i) => at(path[2 * i], path[2 * i + 1]).join(" "));
      lines.push(`M${places.join("L")}`);
    });
    parts.push(`<path d="${lines.join("")}" fill="none" stroke="${look.edgeText}" stroke-opacity=".25" stroke-width=".7"/>`);
  }
  const { texts: colours } = coloursOf(disk.picture, look);
  const shown = [];
  for (let point = 0; point < disk.classes.length && shown.length < MOST_DOTS; point += 1) {
    const [x, y] = [disk.seen[2 * point], disk.seen[2 * point + 1]];
    if (isSeen(x, y) && disk.isShown(point)) shown.push([disk.classes[point] & 7, ...at(x, y)]);
  }
  shown.sort((a, b) => (disk.picture.kinds ? a[0] - b[0] : b[0] - a[0]));
  for (const [c, x, y] of shown) parts.push(`<circle cx="${x}" cy="${y}" r="${disk.picture.kinds && c ? 4 : 1.8}" fill="${colours[c]}"/>`);
  const subject = disk.subjectSeen();
  if (subject) {
    const [x, y] = at(...subject);
    parts.push(`<circle cx="${x}" cy="${y}" r="7" fill="${look.subject}"/>`);
  }
  const scale = DRAWN_SIDE / disk.raster.size;
  for (const { text, left, middle } of disk.written ?? []) {
    parts.push(`<text x="${number(left * scale)}" y="${number(middle * scale)}" dominant-baseline="middle">${escaped(text)}</text>`);
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 -50 ${DRAWN_SIDE + 20} ${DRAWN_SIDE + 60}" font-family="system-ui, sans-serif" font-size="${number((12 * DRAWN_SIDE) / disk.width)}" fill="${look.text}">
<title>${escaped(title)}</title>
<rect x="-10" y="-50" width="${DRAWN_SIDE + 20}" height="${DRAWN_SIDE + 60}" fill="${look.page}"/>
<text x="${half}" y="-20" text-anchor="middle" font-size="26">${escaped(title)}</text>
<clipPath id="rim"><circle cx="${half}" cy="${half}" r="${half}"/></clipPath>
<circle cx="${half}" cy="${half}" r="${half}" fill="${look.halo}" stroke="${look.text}"/>
<g clip-path="url(#rim)" paint-order="stroke" stroke-linejoin="round">${parts.join("\n")}</g>
</svg>
`;
}

export function saveSvg(disk, title, look, name) {
  save(new Blob([svgOf(disk, title, look)], { type: "image/svg+xml" }), `${name}.svg`);
}

// Rows of a table as a file that a spreadsheet opens.
export function saveTable(rows, name) {
  save(new Blob([rows.map((row) => row.map((cell) => String(cell).replace(/[\t\r\n]/g, " ")).join("\t")).join("\n") + "\n"], { type: "text/tab-separated-values" }), `${name}.tsv`);
}
