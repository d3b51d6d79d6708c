// The map: all entities around the chosen one, or around the origin.

import { colourLegend } from "./legends.js";
import { coloured, loadColumns } from "./colouring.js";
import { unpackWindow } from "./link.js";
import { mark, ofEveryRun, shared, source, state } from "./shared.js";
import { isStored, unpack } from "./sources.js";

const pictureOf = (answer, i) => {
  const levels = unpack(answer.levels);
  if (i === 0) shared.levels = levels;
  return picture(answer, levels, i);
};

const picture = (answer, levels, i) => ({ points: unpack(answer.points), ...coloured(levels, i), kinds: false, scale: answer.scale });

// `glide` from what is seen, or as a link says; when `panel` is there too, so that both can be shown or neither.
export async function showMap(glide, panel) {
  const mine = shared.turn;
  await loadColumns();
  const { about, disks, place } = shared;
  const edges = state.edges === "1" && state.relation ? await source.edges(state.relation) : null;
  if (mine !== shared.turn) return undefined;
  if (isStored()) return showStored(edges, glide);
  const point = place.get(state.entity);
  const maps = glide && point !== undefined ? disks.filter((disk) => disk.picture && !disk.picture.kinds) : [];
  const gliding = maps.map((disk) => disk.glideTo(point, { rest: false }));
  const [found] = await Promise.all([ofEveryRun((run) => source.project(state.entity, run)), panel]);
  await Promise.all(gliding);
  if (mine !== shared.turn) return undefined;
  const several = about.runs.length > 1;
  shared.note = found.map((answer, i) => (several ? `${about.runs[i].title}: ` : "") + answer.projection).join(" ");
  shared.nearest = found.map((answer) => answer.nearest);
  colourLegend();
  const shown = disks.map((disk, i) => {
    disk.subject = null;
    disk.edges = edges;
    return disk.show(pictureOf(found[i], i), { ...(glide ? null : unpackWindow(state, i, disk.space)), glide });
  });
  mark();
  return Promise.all(shown);
}

// An exported page has one picture, which it moves.
async function showStored(edges, glide) {
  const [disk] = shared.disks;
  const link = glide ? null : unpackWindow(state, 0, disk.space);
  disk.edges = edges;
  if (!disk.picture || link) {
    const answer = await source.project();
    shared.note = answer.projection;
    shared.nearest = [answer.nearest];
    colourLegend();
    disk.show(pictureOf(answer, 0), link ?? {});
  }
  mark();
  const point = shared.place.get(state.entity);
  if (point !== undefined && !link) await disk.glideTo(point);
  else if (!state.entity && !link) disk.undrag();
}
