// A training as it goes on, or as it went: the points after every epoch that was kept, and the curves.

import { startCompared } from "./compared.js";
import { drawCurves } from "./curves.js";
import { $, announce, count, element, figure, plural, table } from "./dom.js";
import { savePng } from "./download.js";
import { explainPicture } from "./explained.js";
import { figureOf } from "./figure.js";
import { still } from "./pace.js";
import { startPointer } from "./pointer.js";
import { startPresenting } from "./presenting.js";
import { openTraining, unpack } from "./sources.js";
import { euclidean, poincare } from "./spaces.js";
import { colours, startTheme } from "./theme.js";
import { complain, guarded, quiet } from "./trouble.js";

const LOOKS = 1000; // ms between two looks at a training that goes on
const NEAREST = 40; // entities in the table
const FRAME = 110; // ms a frame of the film
const source = openTraining();
const frames = new Map(); // epoch → points
let about = null;
let points = null;
let disk = null;
let edges = null;
let look = null;
let playing = 0;
let shown = -1; // epoch
let compared = null; // the sliders of a layout

// The points after an epoch; those of a training that goes on are asked for again, for the measure changes with the newest.
async function frameOf(epoch) {
  if (!frames.has(epoch)) frames.set(epoch, unpack((await source.picture(epoch)).points));
  return frames.get(epoch);
}

// A tree that was laid out and never trained: its pictures are steps of its growth.
const isLayout = () => about.done && !about.records.length;

async function show(index, glide) {
  const epoch = about.snapshots[index];
  if (epoch === undefined) return;
  const at = await frameOf(epoch);
  $("epoch").value = index;
  $("epoch-said").textContent = `${isLayout() ? "step" : "epoch"} ${epoch} of ${about.epochs}`;
  $("note").textContent = noteOf(epoch);
  shown = epoch;
  if (compared) compared.reset();
  await draw({ points: at, isometry: disk.isometry, zoom: disk.zoom }, glide);
  drawCurves($("curves"), about, epoch, look);
}

// Other points of the same entities: at once, or gliding there.
function draw({ points: at, isometry, zoom, own = 1 }, glide) {
  disk.edges = $("edges").checked ? edges : null;
  const picture = { points: at, classes: unpack(points.depth), kinds: false, colouring: null, zoom: own };
  const drawn = disk.show(picture, { isometry, zoom, glide: glide && !still.matches });
  return drawn.then(writeNear);
}

function noteOf(epoch) {
  const colour = `Colour: levels below the top${points.relation ? ` of ${points.relation}` : ""}.`;
  if (isLayout()) return `A layout, no training: every level stands as far from the one above it. ${colour}`;
  const record = about.records.filter((one) => one.epoch <= epoch).at(-1);
  if (!record) return "Before training.";
  return `After epoch ${epoch}: loss ${figure(record.loss, 4)}. The ${count(points.ids.length)} most important entities. ${colour} All frames have the measure of the newest.`;
}

// The tree in another space; null: as it was laid out.
async function showCompared(picture) {
  stop();
  $("follow").checked = false;
  const last = about.snapshots.at(-1);
  const found = picture ?? { points: await frameOf(last), zoom: 1 };
  $("note").textContent = picture?.note ?? noteOf(last);
  await draw({ ...found, isometry: disk.space.identity() }, disk.zoom === found.zoom);
  announce(`curvature ${$("curvature-said").textContent}, dimension ${$("dimension-said").textContent}`);
}

// A picture on or back, as a presenter does.
function step(by) {
  stop();
  $("follow").checked = false;
  const index = Math.min(about.snapshots.length - 1, Math.max(0, Number($("epoch").value) + by));
  return show(index, true);
}

// From the first picture to the last.
async function play() {
  const mine = (playing += 1);
  $("follow").checked = false;
  $("play").textContent = "Stop";
  const start = Number($("epoch").value) >= about.snapshots.length - 1 ? 0 : Number($("epoch").value);
  for (let i = start; i < about.snapshots.length && mine === playing; i += 1) {
    const until = new Promise((done) => setTimeout(done, FRAME));
    await show(i, false);
    await until;
  }
  if (mine === playing) stop();
}

function stop() {
  playing += 1;
  $("play").textContent = "Play";
}

// The picture as a table: what is seen nearest to its middle, and how deep it stands.
function writeNear() {
  const depth = unpack(points.depth);
  const rows = disk.central(NEAREST).map((i) => element("tr", {}, element("td", {}, points.names[i]),
    element("td", { class: "number" }, String(depth[i])),
    element("td", { class: "number" }, figure(disk.space.fromMiddle(disk.moved[2 * i], disk.moved[2 * i + 1])))));
  const open = $("near").querySelector("details")?.open ?? false;
  $("near").replaceChildren(element("details", { open }, element("summary", {}, element("h2", {}, "The picture as a table: nearest to the middle")),
    table("Entities nearest to the middle of the picture", ["entity", "level", "distance in the picture"], rows)));
}

function writeTable() {
  $("protocol").textContent = about.protocol;
  const validated = about.records.filter((one) => one.mrr !== null).reverse();
  const rows = (validated.length ? validated : about.records.slice(-20).reverse()).slice(0, 100).map((one) =>
    element("tr", {}, element("td", {}, String(one.epoch)), element("td", { class: "number" }, figure(one.loss, 4)), element("td", { class: "number" }, figure(one.mrr))));
  $("validations").replaceChildren(element("h2", {}, "As a table"), table("Loss and validation by epoch", ["epoch", "loss", "MRR"], rows));
}

// Looks again; what is new is shown where the newest is wanted.
async function lookAgain() {
  const before = about?.snapshots.at(-1);
  about = await source.about();
  const [first] = [about.records.at(-1)];
  $("about").textContent = `${about.graph} · ${about.model} d=${about.dim} · ${about.done ? "trained" : "training"}, ${plural(first?.epoch ?? 0, "epoch")} of ${about.epochs}`;
  $("epoch").max = Math.max(0, about.snapshots.length - 1);
  if (about.done && !source.isStored) {
    $("whole").href = "/";
    $("whole").hidden = false;
  }
  if (!isLayout()) writeTable();
  if (!points && about.snapshots.length) {
    points = await source.points();
    edges = unpack(points.edges);
    makeDisk();
    explainPicture(about, isLayout(), points.ids.length);
  }
  if (points && isLayout()) {
    $("curves").closest("section").hidden = true;
    $("about").textContent = `${about.graph} · a tree of ${plural(points.ids.length, "entity", "entities")}`;
    $("validations").hidden = true;
    $("follow").closest("label").hidden = true;
    if (about.sliders) {
      const last = await frameOf(about.snapshots.at(-1));
      compared = startCompared(about.sliders, source, () => last, guarded(showCompared));
    }
  }
  if (!points) return;
  if (about.snapshots.at(-1) !== before) {
    for (const epoch of [...frames.keys()]) if (!source.isStored) frames.delete(epoch); // drawn in the measure of an older one
    if ($("follow").checked) {
      await show(about.snapshots.length - 1, true);
      announce(`epoch ${about.snapshots.at(-1)}`);
    }
  }
  drawCurves($("curves"), about, shown, look);
}

function makeDisk() {
  const label = `Map of ${plural(points.ids.length, "entity", "entities")}. Arrows move, plus and minus zoom, n and p walk through near points. The same as tables follows the picture.`;
  disk = figureOf({ label, space: about.geometry === "poincare" ? poincare : euclidean, entities: points, look: () => look });
  startPointer(disk, { choose: () => {}, hover: (point) => announce(points.names[point]), leave: () => {}, dragged: writeNear, selected: () => {} });
}

const begin = guarded(async () => {
  const redraw = () => { look = colours(); disk?.render(); if (about) drawCurves($("curves"), about, shown, look); };
  startTheme(redraw);
  await lookAgain();
  $("epoch").addEventListener("input", () => { stop(); $("follow").checked = false; show(Number($("epoch").value), false).catch((error) => complain(error.message)); });
  $("follow").addEventListener("change", () => { if ($("follow").checked) show(about.snapshots.length - 1, true); });
  $("edges").addEventListener("change", () => { if (disk) { disk.edges = $("edges").checked ? edges : null; disk.settle(); } });
  $("play").addEventListener("click", () => ($("play").textContent === "Play" ? play() : stop()));
  $("png").addEventListener("click", () => { if (disk) savePng(disk, `${about.graph} · epoch ${shown}`, look, `${about.name}-${shown}`); });
  startPresenting({ step: (by) => step(by).catch((error) => complain(error.message)), redraw });
  document.addEventListener("keydown", (event) => {
    if (event.key === " " && document.activeElement === document.body) { event.preventDefault(); $("play").click(); }
  });
  document.body.dataset.ready = "";
  while (!about.done) {
    await new Promise((done) => setTimeout(done, LOOKS));
    try {
      await lookAgain();
      quiet();
    } catch (error) {
      complain(error.message);
    }
  }
});

begin();
