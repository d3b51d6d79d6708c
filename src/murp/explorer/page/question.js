// The question view, the paper's figure 5: one entity and one relation, before and after it, in four colours.
// Known: in the graph and likely; new: likely and not in the graph; missed: in the graph and not likely; other: neither.

import { $ } from "./dom.js";
import { questionLegend, questionNote } from "./legends.js";
import { unpackWindow } from "./link.js";
import { still } from "./pace.js";
import { mark, ofEveryRun, onMap, question, shared, source, state } from "./shared.js";
import { unpack } from "./sources.js";

const DURATION = 1500; // ms from before to after
let playing = 0; // counts plays: a later one, or a hand on the slider, ends an earlier

// `glide`: anew, otherwise as a link says; when `panel` is there too, so that both can be shown or neither.
export async function showQuestion(glide, panel) {
  const mine = shared.turn;
  const [found, answers] = await Promise.all([
    ofEveryRun((run) => source.question(question(), state.projection, run)),
    ofEveryRun((run) => source.predict(question(), run)),
    panel,
  ]);
  if (mine !== shared.turn) return;
  const { disks, place } = shared;
  shared.questions = found.map((answer) => ({ before: unpack(answer.before), after: unpack(answer.after) }));
  shared.nearest = null;
  shared.note = questionNote(state.projection);
  disks.forEach((disk, i) => {
    const { before, after } = shared.questions[i];
    const asked = answers[i].query.head ?? answers[i].query.tail;
    disk.subject = { ...asked, point: place.get(asked.id), ...found[i].given };
    disk.ranked = answers[i].predictions.map((p) => place.get(p.id)).filter((point) => point !== undefined);
    disk.moment = 1;
    const picture = { points: after.slice(), classes: unpack(found[i].kinds), kinds: true };
    disk.show(picture, glide ? {} : (unpackWindow(state, i, disk.space) ?? {}));
    disk.blend(before, after, Number(state.moment) / 100);
    disk.settle();
  });
  mark();
  questionLegend(found.map((answer) => answer.counts));
  allowMoments(true);
}

// The slider has nothing to move before the question is there.
export function allowMoments(isThere) {
  for (const name of ["play", "moment"]) $(name).disabled = !isThere;
}

function setMoment(value) {
  $("moment").value = value;
  state.moment = String(Math.round(value));
  shared.disks.forEach((disk, i) => disk.blend(shared.questions[i].before, shared.questions[i].after, value / 100));
}

// settled(): the slider has come to rest
export function startMoments(settled) {
  const settle = () => {
    shared.disks.forEach((disk) => disk.settle());
    settled();
  };

  // From before to after the relation; without motion from the one to the other.
  const play = () => {
    const mine = (playing += 1);
    if (still.matches) {
      setMoment(Number(state.moment) === 100 ? 0 : 100);
      settle();
      return;
    }
    const began = performance.now();
    const step = (now) => {
      if (mine !== playing || onMap() || $("play").disabled) return;
      const t = Math.min(Math.max((now - began) / DURATION, 0), 1);
      setMoment(100 * t * t * (3 - 2 * t));
      if (t < 1) requestAnimationFrame(step);
      else settle();
    };
    requestAnimationFrame(step);
  };

  $("play").addEventListener("click", play);
  $("moment").addEventListener("input", (event) => {
    playing += 1;
    setMoment(Number(event.target.value));
  });
  $("moment").addEventListener("change", settle);
}
