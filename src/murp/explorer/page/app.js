// The page: what a choice or a link sets in motion.

import { startControls } from "./controls.js";
import { correct } from "./corrections.js";
import { $, announce, count, element } from "./dom.js";
import { figureOf } from "./figure.js";
import { Hover } from "./hover.js";
import { writeNote } from "./legends.js";
import { isView, packDrag, packZoom, readLink, undrag, writeLink } from "./link.js";
import { showMap } from "./map.js";
import { Minimap } from "./minimap.js";
import { nameRuns } from "./names.js";
import { nearMiddle } from "./near.js";
import { showAnswers, showDifferences, showMetrics, showNear, showTrouble } from "./panels.js";
import { showCard, showWelcome } from "./card.js";
import { startPointer } from "./pointer.js";
import { startPresenting } from "./presenting.js";
import { allowMoments, showQuestion, startMoments } from "./question.js";
import { startSearch } from "./search.js";
import { select, startSelection } from "./selection.js";
import { mark, ofEveryRun, onMap, question, shared, source, state } from "./shared.js";
import { isStored } from "./sources.js";
import { euclidean, poincare } from "./spaces.js";
import { colours, startTheme } from "./theme.js";
import { showTree, writeTree } from "./tree.js";
import { complain, guarded, quiet, suggestions } from "./trouble.js";
import { canUndo, keep, takeBack } from "./undo.js";

let good = null; // the last {state, isometries} that could be shown

// A picture with a caption; number: of the run, from 1
function makeFigure(id, caption, label, space, number) {
  const { entities } = shared;
  const tip = element("div", { class: "tip", hidden: true });
  const small = element("canvas", { class: "minimap", "aria-hidden": "true", hidden: true });
  const disk = figureOf({ id, caption, label, space, entities, look: () => shared.look, parts: [small], beside: [tip] });
  disk.minimap = new Minimap(small, disk, () => shared.look, (x, y) => {
    disk.goTo(x, y);
    remember();
  });
  const hover = new Hover(source, tip, number);
  startPointer(disk, {
    choose: (point) => { hover.hide(); choose(entities.ids[point]); },
    hover: (point, x, y) => { hover.show(entities.ids[point], entities.names[point], x, y); announce(entities.names[point]); },
    leave: () => hover.hide(),
    selected: (points) => select(points),
    dragged: () => {
      remember();
      announce(`Moved. Near the middle: ${disk.central(3).map((p) => entities.names[p]).join(", ")}`);
    },
  });
  return disk;
}

const makeDisk = (run, i) =>
  makeFigure(
    `figure-${i + 1}`, [`${run.kind} `, element("span", {}, run.called)],
    `${run.title}: map of ${count(shared.about.drawn)} entities. Arrows move, plus and minus zoom, n and p walk through near points, Enter centres. The same as tables follows the picture.`,
    run.geometry === "poincare" ? poincare : euclidean, i + 1,
  );

const makeTree = (title) =>
  makeFigure("tree-figure", [title], `${title}. Arrows move, plus and minus zoom, n and p walk, Enter chooses. The same as a table follows the picture.`, poincare, 1);

// What is seen now: in words, as a table, in the address, and to come back to; not while it is about to change.
function remember(followed = false) {
  if (!("ready" in document.body.dataset)) return;
  const { about, disks } = shared;
  writeNote();
  showNear(about.runs, nearMiddle(), choose);
  writeTree(choose);
  disks.forEach((disk, i) => {
    state[`drag${i + 1}`] = packDrag(disk.isometry, disk.flip);
    state[`zoom${i + 1}`] = packZoom(disk.zoom);
  });
  writeLink(state, { followed });
  keep(location.href);
  $("undo").disabled = !canUndo();
  good = { state: { ...state }, isometries: disks.map((disk) => disk.isometry) };
}

async function showPanel() {
  const mine = shared.turn;
  const { about } = shared;
  if (!state.entity) {
    document.title = `${about.graph.name} · murp explorer`;
    showWelcome(about, ask);
    $("answers").replaceChildren();
    return;
  }
  const cards = await ofEveryRun((run) => source.entity(state.entity, run));
  if (mine !== shared.turn) return;
  document.title = `${cards[0].name} · ${about.graph.name} · murp explorer`;
  showCard(about.runs, cards, choose, ask);
  announce(`${cards[0].name} in the middle. ${cards[0].gloss ?? ""}`);
  if (isStored() || !state.relation) return;
  const answers = await ofEveryRun((run) => source.predict(question(), run));
  if (mine === shared.turn) showAnswers(about.runs, answers, { choose, mark, why: (id, run) => source.why(question(), id, run) });
}

// The controls say what the state says.
function reflect() {
  const map = onMap();
  document.body.dataset.view = map ? "map" : "question";
  $("view-map").setAttribute("aria-pressed", String(map));
  $("view-question").setAttribute("aria-pressed", String(!map));
  $("view-question").disabled = !state.entity;
  for (const name of ["relation", "direction", "projection", "moment", "colour", "size"]) $(name).value = state[name];
  $("edges").checked = state.edges === "1";
  $("tree").checked = state.tree === "1";
}

// Shows the state; whether that succeeded. glide: smoothly, forgetting an older drag; otherwise as the link says.
async function refresh(glide = true) {
  shared.turn += 1;
  const mine = shared.turn;
  quiet();
  delete document.body.dataset.ready;
  if (glide) undrag(state);
  reflect();
  allowMoments(false);
  try {
    const panel = showPanel();
    await Promise.all([panel, onMap() ? showMap(glide, panel) : showQuestion(glide, panel)]);
    if (mine !== shared.turn) return false;
    await showTree(makeTree);
    document.body.dataset.tree = shared.trees.length ? "1" : "0";
    if (mine !== shared.turn) return false;
    document.body.dataset.ready = "";
    remember(!glide);
    return true;
  } catch (error) {
    if (mine === shared.turn) restore(error);
    return false;
  }
}

// Back to what could be shown: pictures change only when everything is there, and the source keeps the last answers.
function restore(error) {
  shared.turn += 1;
  complain(error.message);
  if (!good) return;
  Object.assign(state, good.state);
  reflect();
  allowMoments(!onMap());
  shared.disks.forEach((disk, i) => disk.moveTo(good.isometries[i]));
  showPanel().catch(() => {});
  writeLink(state, { followed: true });
  document.body.dataset.ready = "";
}

function choose(id) {
  state.entity = id;
  refresh();
}

// A question as a whole: {entity, relation, direction}
function ask({ entity, relation, direction }) {
  Object.assign(state, { entity: entity.id, relation: relation.id, direction, view: isStored() ? "map" : "question", moment: "100" });
  refresh();
}

// The questions to begin with, one after the other: the slides of a lecture.
let slide = -1;

function step(by) {
  const { suggestions: slides } = shared.about;
  slide = Math.max(-1, Math.min(slides.length - 1, slide + by));
  if (slide >= 0) ask(slides[slide]);
  else choose("");
}

function undo() {
  const address = takeBack();
  if (address === null) return;
  history.replaceState(null, "", address);
  follow();
}

// Shows what the address says, as far as this graph has it.
async function follow() {
  shared.turn += 1;
  const mine = shared.turn;
  const link = readLink();
  try {
    const { said, closest } = await correct(link);
    if (mine !== shared.turn) return;
    Object.assign(state, link);
    const shown = await refresh(false);
    if (shown && said.length) complain(said.join(" "), suggestions(closest, choose));
  } catch (error) {
    if (mine === shared.turn) restore(error);
  }
}

const start = guarded(async () => {
  const redraw = () => {
    shared.look = colours();
    for (const disk of [...shared.disks, ...shared.trees]) disk.render();
  };
  startTheme(redraw);
  if (isStored()) for (const part of document.querySelectorAll("[data-server]")) part.hidden = true;
  const [about, entities] = await Promise.all([source.about(), source.entities()]);
  nameRuns(about.runs);
  Object.assign(shared, { about, entities, place: new Map(entities.ids.map((id, i) => [id, i])) });
  $("about").textContent = $("about").title = `${about.graph.name} · ${new Intl.ListFormat("en").format(about.runs.map((run) => run.title))}`;
  $("relation").append(...about.relations.map((r) => element("option", { value: r.id }, `${r.name} (${count(r.facts)})`)));
  for (const name of ["colour", "size"]) $(name).append(...about.columns.map((column) => element("option", { value: column.name }, column.name)));
  $("tree").disabled = about.hierarchy === null;
  if (about.training && !isStored()) {
    $("training").href = "/training"; // not in the markup: a page that is sent has no server to ask
    $("training").hidden = false;
  }
  $("disks").classList.toggle("pair", about.runs.length > 1);
  document.querySelector("main").classList.toggle("two", about.runs.length > 1);
  shared.disks = about.runs.map(makeDisk);
  startPresenting({ step, redraw });
  startControls({ refresh, choose, remember, undo });
  startSelection(choose, mark);
  startMoments(remember);
  startSearch(source, about.relations, choose, (id) => { state.relation = id; refresh(); }, (error) => complain(error.message));
  addEventListener("hashchange", () => { if (isView()) follow(); });
  await follow();
  if (!isStored()) await showFigures();
});

async function showFigures() {
  $("metrics").replaceChildren(element("p", { class: "note" }, "Metrics by relation are being computed …"));
  try {
    showMetrics(shared.about.runs, await ofEveryRun((run) => source.metrics(run)));
    if (shared.about.runs.length > 1) showDifferences(shared.about.runs, await source.differences(), ask);
  } catch (error) {
    showTrouble("metrics", error.message);
  }
}

start();
