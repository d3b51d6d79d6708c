// What a moving picture leaves out, learned from how soon after one of its frames the next can begin.
// At rest nothing is left out.

export const still = matchMedia("(prefers-reduced-motion: reduce)"); // the reader wants no motion at all
const EDGES = [200, 1500, 3000]; // those nearest to the middle: at least, to begin with, at most
const POINTS = [4000, 45000, 100000]; // the most important ones
const SLOW = 20; // ms from frame to frame; a screen shows one every 17
const WORK = 6; // ms of a frame that the page's own work may take: the browser paints in the rest
const PATIENCE = 3; // slow frames before the picture is drawn coarser

const between = ([least, , most], value) => Math.min(Math.max(Math.round(value), least), most);

export class Pace {
  edges = EDGES[1];
  points = POINTS[1];
  late = 0;

  // Device pixels a CSS pixel, of a screen that has `sharpness`: a quarter of the pixels move faster.
  sharpness(sharpness) {
    return this.late < PATIENCE ? sharpness : Math.min(sharpness, 1);
  }

  // A frame took `gap` ms, the browser's own painting included, and `work` of them the page's drawing. Pixels go first,
  // then edges, then points.
  frame(gap, sharpness, work = 0) {
    const slow = gap > SLOW || work > WORK;
    if (this.sharpness(sharpness) > 1) {
      this.late = slow ? this.late + 1 : Math.max(0, this.late - 1);
    } else if (slow && this.edges > EDGES[0]) {
      this.edges = between(EDGES, this.edges * 0.7);
    } else if (slow) {
      this.points = between(POINTS, this.points * 0.8);
    } else if (this.points < POINTS[1]) {
      this.points = between(POINTS, this.points * 1.05);
    } else {
      this.edges = between(EDGES, this.edges * 1.05);
    }
  }
}
