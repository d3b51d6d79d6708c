// One disk: points under an isometry, drawn in two layers (dots below; edges, marks and names above).

import { byClass, styles } from "./dots.js";
import { traceEdges } from "./geodesics.js";
import { drawOverlay, labelled, touching } from "./overlay.js";
import { Raster } from "./raster.js";
import { alignment, carry, moved } from "./spaces.js";

const still = matchMedia("(prefers-reduced-motion: reduce)");
const EDGES_STILL = 20000;
const BUDGET = [300, 1500, 6000]; // edges of a moving picture: at least, to begin with, at most
const SLOW = 22; // ms a frame that moves may take
const SHARPEST = 2; // device pixels a CSS pixel; more costs time and shows nothing

export class Disk {
  // parts: {dots, overlay} canvases; look: () => colours
  constructor(parts, space, names, look) {
    Object.assign(this, { ...parts, space, names, look });
    this.raster = new Raster(parts.dots);
    this.context = parts.overlay.getContext("2d");
    this.isometry = space.identity();
    this.flip = false;
    this.base = new Float32Array(0);
    this.classes = new Uint8Array(0);
    this.edges = null;
    this.subject = null; // of a question: {before: [x, y], after: [x, y]}
    this.marks = [];
    this.focused = -1;
    this.animation = 0;
    this.budget = BUDGET[1];
    this.frames = 0;
    new ResizeObserver(() => this.resize()).observe(parts.overlay);
  }

  resize() {
    const width = this.overlay.clientWidth;
    if (width === 0) return;
    this.sharpness = Math.min(devicePixelRatio || 1, SHARPEST);
    const size = Math.round(width * this.sharpness);
    if (size !== this.overlay.width) {
      this.overlay.width = size;
      this.overlay.height = size;
      this.raster.resize(size);
    }
    this.render();
  }

  // A new picture {points, classes, kinds}: at once, or gliding there from what is seen now.
  show(picture, { isometry = null, flip = false, glide = false } = {}) {
    const before = this.moved;
    const sameSize = before && before.length === picture.points.length;
    this.picture = picture;
    this.classes = picture.classes;
    this.order = byClass(picture);
    if (isometry) {
      this.isometry = isometry;
      this.flip = flip;
    } else if (glide && sameSize) {
      const found = alignment(picture.points, before);
      this.flip = found.flip;
      this.isometry = this.space.rotation(found.angle);
    } else {
      this.isometry = this.space.identity();
      this.flip = false;
    }
    this.undragged = isometry ? this.space.identity() : this.isometry;
    this.setBase(picture.points);
    this.place();
    if (!glide || !sameSize || still.matches) {
      this.settle();
      return Promise.resolve();
    }
    const after = this.moved.slice();
    return this.animate(420, (t) => {
      for (let i = 0; i < after.length; i += 1) this.moved[i] = before[i] + t * (after[i] - before[i]);
      this.seen = this.space.draw(this.moved, this.drawnBuffer);
      this.render(true);
    });
  }

  setBase(points) {
    this.base = points;
    if (this.flip) {
      this.base = points.slice();
      for (let i = 1; i < points.length; i += 2) this.base[i] = -points[i];
    }
    if (!this.moved || this.moved.length !== points.length) {
      this.moved = new Float32Array(points.length);
      this.drawnBuffer = new Float32Array(points.length);
    } else {
      this.moved = this.moved.slice(); // an animation may still read the old one
    }
  }

  // Between two pictures of the same points: a share t of the way from before to after.
  blend(before, after, t) {
    const sign = this.flip ? -1 : 1;
    const mixed = this.base === after || this.base === before ? after.slice() : this.base;
    for (let i = 0; i < after.length; i += 2) {
      mixed[i] = before[i] + t * (after[i] - before[i]);
      mixed[i + 1] = sign * (before[i + 1] + t * (after[i + 1] - before[i + 1]));
    }
    this.base = mixed;
    this.moment = t;
    this.place();
    this.render(true);
  }

  // Applies the isometry to every point.
  place() {
    this.space.apply(this.isometry, this.base, this.moved);
    this.seen = this.space.draw(this.moved, this.drawnBuffer);
  }

  // The subject of a question under the isometry, drawn; null on the map.
  subjectSeen() {
    if (!this.subject) return null;
    const { before, after } = this.subject;
    const t = this.moment ?? 1;
    const y = (this.flip ? -1 : 1) * (before[1] + t * (after[1] - before[1]));
    return this.space.drawn(...moved(this.space, this.isometry, before[0] + t * (after[0] - before[0]), y));
  }

  // Moves what is seen at (px, py) to (qx, qy), positions in the unit disk.
  drag(px, py, qx, qy) {
    const [a, b] = [this.space.undrawn(...inside(px, py)), this.space.undrawn(...inside(qx, qy))];
    this.isometry = this.space.compose(carry(this.space, ...a, ...b), this.isometry);
    this.place();
    this.render(true);
  }

  // Glides along the geodesic until the point is in the middle.
  glideTo(point) {
    const start = this.isometry;
    const [x, y] = [this.moved[2 * point], this.moved[2 * point + 1]];
    const go = (t) => {
      this.isometry = this.space.compose(this.space.toMiddle(...this.space.share(x, y, t)), start);
      this.place();
      this.render(true);
    };
    if (still.matches) {
      go(1);
      this.settle();
      return Promise.resolve();
    }
    return this.animate(380, go);
  }

  undrag() {
    this.isometry = this.undragged;
    this.setBase(this.picture.points);
    this.place();
    this.settle();
  }

  isMoved() {
    return Math.abs(this.isometry[2]) + Math.abs(this.isometry[3]) > 1e-3;
  }

  animate(duration, step) {
    const mine = (this.animation += 1);
    const began = performance.now();
    return new Promise((done) => {
      const frame = (now) => {
        if (mine !== this.animation) return done();
        const t = Math.min(Math.max((now - began) / duration, 0), 1);
        step(t * t * (3 - 2 * t));
        if (t < 1) return requestAnimationFrame(frame);
        this.settle();
        return done();
      };
      requestAnimationFrame(frame);
    });
  }

  stop() {
    this.animation += 1;
  }

  // At rest: which names are written is decided again.
  settle() {
    this.labels = labelled(this);
    this.ownEdges = this.edges ? touching(this.edges, this.marks) : [];
    this.render();
  }

  // The drawn point within `reach` CSS pixels of a position in the unit disk, -1 where there is none.
  at(x, y, reach) {
    if (!this.seen) return -1;
    let best = ((2 * reach) / this.overlay.clientWidth) ** 2;
    let found = -1;
    for (let i = 0; i < this.seen.length; i += 2) {
      const distance = (this.seen[i] - x) ** 2 + (this.seen[i + 1] - y) ** 2;
      if (distance < best) {
        best = distance;
        found = i / 2;
      }
    }
    return found;
  }

  // The points nearest to the middle of what is seen, nearest first.
  central(most) {
    const squares = new Float32Array(this.classes.length);
    for (let i = 0; i < squares.length; i += 1) squares[i] = this.seen[2 * i] ** 2 + this.seen[2 * i + 1] ** 2;
    const limit = squares.slice().sort()[Math.min(most, squares.length) - 1];
    const found = [];
    for (let i = 0; i < squares.length; i += 1) if (squares[i] <= limit) found.push(i);
    return found.sort((a, b) => squares[a] - squares[b]).slice(0, most);
  }

  // Asks for a frame; `moving` saves what is only worth its time at rest.
  render(moving = false) {
    this.moving = moving;
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      if (!this.seen || !this.raster.image) return; // nothing to draw, or nowhere yet
      this.paint();
    });
  }

  paint() {
    const began = performance.now();
    const look = this.look();
    const { raster } = this;
    raster.clear(look.background);
    if (this.edges && !this.subject) {
      // Many edges are drawn so faintly that together they shade the picture rather than fill it.
      const most = this.moving ? this.budget : EDGES_STILL;
      const shown = Math.min(this.edges.length / 2, most);
      const alpha = Math.min(0.6, Math.max(0.06, 260 / shown));
      traceEdges(this.space, this.moved, this.edges, most, (path, length) => raster.line(path, length, look.edge, alpha));
    }
    raster.dots(this.seen, this.order, this.classes, styles(this, look, this.overlay.width));
    raster.show();
    drawOverlay(this, look);
    if (this.moving) {
      // As many edges as this machine can move smoothly.
      const wanted = this.budget * (performance.now() - began > SLOW ? 0.75 : 1.1);
      this.budget = Math.round(Math.min(Math.max(wanted, BUDGET[0]), BUDGET[2]));
    }
    this.frames += 1;
    this.overlay.dataset.frames = this.frames;
  }
}

function inside(x, y) {
  const radius = Math.hypot(x, y);
  return radius > 0.96 ? [(x * 0.96) / radius, (y * 0.96) / radius] : [x, y];
}
