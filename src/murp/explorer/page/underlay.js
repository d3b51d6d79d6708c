// What lies below the marks and names: the edges of the relation, and above them the dots.

import { prominentStyles, styles } from "./dots.js";
import { traceEdges } from "./geodesics.js";

export const DONE = Infinity;
const EDGES_STILL = 20000; // of more, those nearest to the middle
const SLICE = 8; // ms a frame for the edges at rest

// False where edges are left for the next frame: until the last is drawn the canvas keeps the picture it has.
export function drawUnderlay(disk, look) {
  const { raster, edges, moving, pace } = disk;
  if (disk.next === null) {
    disk.begun = moving ? pace.sharpness(disk.sharpest) : disk.sharpest;
    raster.begin(Math.round(disk.width * disk.begun), look.background, disk.zoom);
    disk.next = 0;
  }
  if (edges && !disk.subject) {
    // Many edges are drawn so faintly that together they shade the picture rather than fill it.
    const most = moving ? pace.edges : EDGES_STILL;
    const alpha = Math.min(0.6, Math.max(0.06, 260 / Math.min(edges.length / 2, most)));
    const line = (path, length) => raster.line(path, length, look.edge, alpha, moving);
    const until = moving ? Infinity : performance.now() + SLICE;
    const skip = disk.hidden.size ? (a, b) => !disk.isShown(a) || !disk.isShown(b) : null;
    disk.next = traceEdges(disk.space, disk.moved, edges, most, line, disk.next, until, skip);
    if (disk.next < edges.length) return false;
  }
  raster.dots(disk.seen, moving ? disk.orderOf(pace.points) : disk.order, disk.classes, styles(disk, look, raster.size));
  if (moving && !disk.picture.kinds) {
    for (const style of prominentStyles(disk, look, disk.begun)) raster.dots(disk.seen, disk.standing, disk.classes, style);
  }
  raster.show();
  disk.sharpness = disk.begun;
  disk.next = DONE;
  return true;
}
