// The entities nearest to the middle of what is seen.

import { onMap, shared } from "./shared.js";

const MOST = 20;

// Whether distances in the picture of a run are the model's own: of two dimensions nothing is projected.
export const isModel = (run) => onMap() && run.dim <= 2;

// [{entities: [{id, name, distance}], isTrue}] a run: as the model told, or as the picture shows since it was moved.
export function nearMiddle() {
  const { about, disks, entities, nearest } = shared;
  return disks.map((disk, i) => {
    const run = about.runs[i];
    if (nearest && !disk.isMoved()) return { entities: nearest[i], isTrue: true };
    const scale = 1 / (Math.sqrt(run.curvature ?? 1) * (disk.picture.scale ?? 1));
    const found = disk.central(MOST).map((point) => ({
      id: entities.ids[point],
      name: entities.names[point],
      distance: scale * disk.space.fromMiddle(disk.moved[2 * point], disk.moved[2 * point + 1]),
    }));
    return { entities: found, isTrue: isModel(run) };
  });
}
