// What a moving picture leaves out, learned from how soon after one of its frames the next can begin.
// At rest nothing is left out.

export const still = matchMedia("(prefers-reduced-motion: reduce)"); // the reader wants no motion at all
const EDGES = [300, 1500, 3000]; // those nearest to the middle: at least, to begin with, at most
const SLOW = 20; // ms a frame; a screen shows one every 17
const PATIENCE = 5; // slow frames before the picture is drawn coarser

export class Pace {
  edges = EDGES[1];
  late = 0;

  // Device pixels a CSS pixel, of a screen that has `sharpness`: a quarter of the pixels move faster.
  sharpness(sharpness) {
    return this.late < PATIENCE ? sharpness : Math.min(sharpness, 1);
  }

  // A frame took `gap` ms, the browser's own painting included.
  frame(gap, sharpness) {
    const slow = gap > SLOW;
    if (this.sharpness(sharpness) > 1) this.late = slow ? this.late + 1 : Math.max(0, this.late - 1);
    else this.edges = Math.min(Math.max(Math.round(this.edges * (slow ? 0.75 : 1.1)), EDGES[0]), EDGES[2]);
  }
}
