// The page: its state, the two views, and what a choice sets in motion.

import { Disk } from "./disk.js";
import { $, announce, count, element } from "./dom.js";
import { Hover } from "./hover.js";
import { levelLegend, questionLegend, questionNote, writeNote } from "./legends.js";
import { packDrag, readLink, unpackDrag, writeLink } from "./link.js";
import { showAnswers, showCard, showMetrics, showNear, showTrouble, showWelcome, title } from "./panels.js";
import { startPointer } from "./pointer.js";
import { startSearch } from "./search.js";
import { isStored, openSource, unpack } from "./sources.js";
import { euclidean, poincare } from "./spaces.js";
import { colours, startTheme } from "./theme.js";

const source = openSource();
let state = readLink();
let look = null;
let about = null;
let entities = null;
let place = null; // id → point
let disks = [];
let questions = []; // the pictures of the question view, one a disk
let note = ""; // what the picture shows
let turn = 0; // counts choices: an answer to an older one is dropped

const guarded = (work) => async (...given) => {
  try {
    $("trouble").hidden = true;
    await work(...given);
  } catch (error) {
    $("trouble").textContent = error.message;
    $("trouble").hidden = false;
  }
};

const question = () => ({ relation: state.relation, [state.direction === "tail" ? "head" : "tail"]: state.entity });
const onMap = () => state.view === "map" || !state.entity;

function makeDisk(run, i) {
  const dots = element("canvas", { class: "dots", "aria-hidden": "true" });
  const overlay = element("canvas", {
    class: "overlay", tabindex: "0", role: "application", "aria-roledescription": "hyperbolic map",
    "aria-label": `${title(run)}: map of ${count(about.drawn)} entities. Arrows move, n and p walk through near points, Enter centres. The same as tables follows the picture.`,
  });
  const tip = element("div", { class: "tip", hidden: true });
  const caption = element("figcaption", {}, `${title(run)} `, element("span", {}, run.name));
  $("disks").append(element("figure", {}, caption, element("div", { class: "disk" }, dots, overlay), tip));
  const disk = new Disk({ dots, overlay }, run.geometry === "poincare" ? poincare : euclidean, entities.names, () => look);
  const hover = new Hover(source, tip, i + 1);
  startPointer(disk, {
    choose: (point) => { hover.hide(); choose(entities.ids[point]); },
    hover: (point, x, y) => { hover.show(entities.ids[point], entities.names[point], x, y); announce(entities.names[point]); },
    leave: () => hover.hide(),
    dragged: () => { remember(); announce(`Moved. Near the middle: ${disk.central(3).map((p) => entities.names[p]).join(", ")}`); },
  });
  return disk;
}

function remember() {
  writeNote(note, disks.some((disk) => disk.isMoved()));
  disks.forEach((disk, i) => { state[`drag${i + 1}`] = packDrag(disk.isometry, disk.flip); });
  writeLink(state);
}

// The map around the chosen entity; `glide` from what is seen, or as a link says.
async function showMap(glide) {
  const mine = turn;
  const edges = state.edges === "1" && state.relation ? await source.edges(state.relation) : null;
  if (isStored()) return showStored(edges, glide);
  const point = place.get(state.entity);
  const gliding = glide && point !== undefined ? disks.filter((disk) => disk.picture && !disk.picture.kinds).map((disk) => disk.glideTo(point, { rest: false })) : [];
  const found = await Promise.all(about.runs.map((_, i) => source.project(state.entity, i + 1))).catch((error) => {
    for (const disk of disks) { disk.stop(); disk.settle(); }
    throw error;
  });
  await Promise.all(gliding);
  if (mine !== turn) return undefined;
  const several = about.runs.length > 1;
  note = found.map((answer, i) => (several ? `${title(about.runs[i])}: ` : "") + answer.projection).join(" ");
  showNear(about.runs, found.map((answer) => answer.nearest), choose);
  const shown = disks.map((disk, i) => {
    disk.subject = null;
    disk.edges = edges;
    return disk.show(pictureOf(found[i]), { ...(glide ? null : unpackDrag(state[`drag${i + 1}`])), glide });
  });
  mark();
  return Promise.all(shown);
}

// An exported page has one picture, which it moves.
async function showStored(edges, glide) {
  const [disk] = disks;
  const link = glide ? null : unpackDrag(state.drag1);
  disk.edges = edges;
  if (!disk.picture || link) {
    const answer = await source.project();
    note = answer.projection;
    showNear(about.runs, [answer.nearest], choose);
    disk.show(pictureOf(answer), link ?? {});
  }
  mark();
  const point = place.get(state.entity);
  if (point !== undefined && !link) await disk.glideTo(point);
  else if (!state.entity && !link) disk.undrag();
}

const pictureOf = (answer) => ({ points: unpack(answer.points), classes: unpack(answer.levels), kinds: false });

// The paper's figure 5: before and after the relation, in four colours.
async function showQuestion(glide) {
  const mine = turn;
  const [found, answers] = await Promise.all([
    Promise.all(about.runs.map((_, i) => source.question(question(), state.projection, i + 1))),
    Promise.all(about.runs.map((_, i) => source.predict(question(), i + 1))),
  ]);
  if (mine !== turn) return;
  questions = found.map((answer) => ({ before: unpack(answer.before), after: unpack(answer.after) }));
  disks.forEach((disk, i) => {
    disk.subject = found[i].subject;
    disk.subjectPoint = place.get(state.entity);
    disk.subjectName = entities.names[place.get(state.entity)] ?? state.entity;
    const picture = { points: questions[i].after.slice(), classes: unpack(found[i].kinds), kinds: true };
    disk.ranked = answers[i].predictions.map((p) => place.get(p.id)).filter((point) => point !== undefined);
    disk.moment = 1;
    disk.show(picture, glide ? {} : (unpackDrag(state[`drag${i + 1}`]) ?? {}));
    disk.blend(questions[i].before, questions[i].after, Number(state.moment) / 100);
    disk.settle();
  });
  mark();
  questionLegend(found.map((answer) => answer.counts));
  note = questionNote(state.projection);
}

function mark(id = null) {
  const point = place.get(id ?? state.entity);
  for (const disk of disks) {
    const hidden = point === undefined || (disk.subject && id === null);
    disk.mark(hidden ? [] : [point]);
  }
}

async function showPanel() {
  const mine = turn;
  if (!state.entity) {
    showWelcome(about);
    $("answers").replaceChildren();
    return;
  }
  const cards = await Promise.all(about.runs.map((_, i) => source.entity(state.entity, i + 1)));
  if (mine !== turn) return;
  showCard(about.runs, cards, choose);
  announce(`${cards[0].name} in the middle. ${cards[0].gloss ?? ""}`);
  if (isStored() || !state.relation) return;
  const answers = await Promise.all(about.runs.map((_, i) => source.predict(question(), i + 1)));
  if (mine === turn) showAnswers(about.runs, question(), answers, { choose, mark });
}

// Shows the state. glide: smoothly, forgetting an older drag; otherwise as the link says.
const refresh = guarded(async (glide = true) => {
  turn += 1;
  const mine = turn;
  delete document.body.dataset.ready;
  if (glide) state.drag1 = state.drag2 = "";
  const map = onMap();
  document.body.dataset.view = map ? "map" : "question";
  $("view-map").setAttribute("aria-pressed", String(map));
  $("view-question").setAttribute("aria-pressed", String(!map));
  $("view-question").disabled = !state.entity;
  for (const name of ["relation", "direction", "projection", "moment"]) $(name).value = state[name];
  $("edges").checked = state.edges === "1";
  if (map) levelLegend();
  writeLink(state);
  await Promise.all([showPanel(), map ? showMap(glide) : showQuestion(glide)]);
  if (mine !== turn) return;
  remember();
  document.body.dataset.ready = "";
});

function choose(id) {
  state.entity = id;
  refresh();
}

// From before to after the relation, in a second and a half.
function play() {
  const began = performance.now();
  const step = (now) => {
    if (onMap()) return;
    const t = Math.min((now - began) / 1500, 1);
    setMoment(100 * t * t * (3 - 2 * t));
    if (t < 1) requestAnimationFrame(step);
    else settleMoment();
  };
  requestAnimationFrame(step);
}

function setMoment(value) {
  $("moment").value = value;
  state.moment = String(Math.round(value));
  disks.forEach((disk, i) => disk.blend(questions[i].before, questions[i].after, value / 100));
}

function settleMoment() {
  disks.forEach((disk) => disk.settle());
  writeLink(state);
}

function startControls() {
  const set = (name) => (event) => { state[name] = event.target.value; refresh(); };
  $("relation").addEventListener("change", set("relation"));
  $("direction").addEventListener("change", set("direction"));
  $("projection").addEventListener("change", set("projection"));
  $("edges").addEventListener("change", guarded(async (event) => {
    state.edges = event.target.checked ? "1" : "0";
    const edges = event.target.checked ? await source.edges(state.relation) : null;
    for (const disk of disks) { disk.edges = edges; disk.settle(); }
    writeLink(state);
  }));
  $("view-map").addEventListener("click", () => { state.view = "map"; refresh(); });
  $("view-question").addEventListener("click", () => { state.view = "question"; refresh(); });
  $("origin").addEventListener("click", () => choose(""));
  $("play").addEventListener("click", play);
  $("moment").addEventListener("input", (event) => setMoment(Number(event.target.value)));
  $("moment").addEventListener("change", settleMoment);
  $("link").addEventListener("click", guarded(async () => {
    remember();
    await navigator.clipboard.writeText(location.href);
    announce("Link copied");
    $("link").textContent = "Copied";
    setTimeout(() => { $("link").textContent = "Copy link"; }, 1500);
  }));
  addEventListener("hashchange", () => { state = { ...readLink() }; state.relation ||= about.relations[0]?.id ?? ""; refresh(false); });
}

const start = guarded(async () => {
  startTheme(() => { look = colours(); disks.forEach((disk) => disk.render()); });
  if (isStored()) for (const part of document.querySelectorAll("[data-server]")) part.hidden = true;
  [about, entities] = await Promise.all([source.about(), source.entities()]);
  place = new Map(entities.ids.map((id, i) => [id, i]));
  $("about").textContent = `${about.graph.name} · ${about.runs.map(title).join(" and ")}`;
  document.title = `${about.graph.name} · murp explorer`;
  $("relation").append(...about.relations.map((r) => element("option", { value: r.id }, `${r.name} (${count(r.facts)})`)));
  state.relation ||= about.relations[0]?.id ?? "";
  $("disks").classList.toggle("pair", about.runs.length > 1);
  document.querySelector("main").classList.toggle("two", about.runs.length > 1);
  disks = about.runs.map(makeDisk);
  startControls();
  startSearch(source, choose);
  await refresh(false);
  if (isStored()) return;
  $("metrics").replaceChildren(element("p", { class: "note" }, "Figures by relation are being computed …"));
  try {
    showMetrics(about.runs, await Promise.all(about.runs.map((_, i) => source.metrics(i + 1))));
  } catch (error) {
    showTrouble("metrics", error.message);
  }
});

start();
