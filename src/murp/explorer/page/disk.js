// One disk: points under an isometry, drawn in two layers (dots below; edges, marks and names above).

import { byClass } from "./dots.js";
import { labelling } from "./labels.js";
import { drawOverlay, touching } from "./overlay.js";
import { Pace, still } from "./pace.js";
import { Raster } from "./raster.js";
import { alignment } from "./spaces.js";
import { DONE, drawUnderlay } from "./underlay.js";
import { bounded, draggedBy, reachOf, zoomedAt } from "./view.js";

const MOVING = 100000; // points at most in motion
const SHARPEST = 2; // device pixels a CSS pixel; more costs time and shows nothing

export class Disk {
  // parts: {dots, overlay} canvases; entities: {ids, names}; look: () => colours
  constructor(parts, space, entities, look) {
    Object.assign(this, { ...parts, space, entities, look });
    this.raster = new Raster(parts.dots);
    this.context = parts.overlay.getContext("2d");
    this.isometry = space.identity();
    this.zoom = 1;
    this.flip = false;
    this.hidden = new Set(); // colours that the legend has switched off
    this.named = entities.ids.length; // points after these are drawn and have no name here
    this.widths = new Map();
    this.base = new Float32Array(0);
    this.classes = new Uint8Array(0);
    this.edges = null;
    this.subject = null; // of a question: {id, name, point, before: [x, y], after: [x, y]}
    this.marks = [];
    this.standing = new Uint32Array(0); // the labelled points, class by class
    this.focused = -1;
    this.animation = 0;
    this.gliding = false;
    this.width = 0; // CSS pixels
    this.next = null; // edge to draw: null before a new picture, DONE when all is drawn
    new ResizeObserver(() => this.resize()).observe(parts.overlay);
  }

  resize() {
    this.width = this.overlay.clientWidth;
    this.sharpest = Math.min(devicePixelRatio || 1, SHARPEST);
    this.pace = new Pace();
    this.render();
  }

  // A new picture {points, classes, kinds}, perhaps with a zoom that is its own: at once, or gliding there from what is seen now.
  show(picture, { isometry = null, flip = false, zoom = 1, glide = false } = {}) {
    this.stop();
    const before = this.moved;
    const sameSize = before && before.length === picture.points.length;
    this.picture = picture;
    this.classes = picture.classes;
    this.hidden = picture.hidden ?? new Set();
    this.reach = reachOf(this.space, picture.points);
    this.zoom = zoom;
    this.sort();
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
    const go = (t) => {
      for (let i = 0; i < after.length; i += 1) this.moved[i] = before[i] + t * (after[i] - before[i]);
      this.seen = this.space.draw(this.moved, this.drawnBuffer);
      this.render(true);
    };
    go(0);
    return this.animate(420, go);
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

  // Applies the isometry to every point, or in motion to as many of the most important ones as a moving picture shows.
  place(moving = false) {
    this.isBehind = moving && this.base.length > 2 * MOVING;
    const base = this.isBehind ? this.base.subarray(0, 2 * MOVING) : this.base;
    this.space.apply(this.isometry, base, this.moved);
    this.seen = this.space.draw(this.moved, this.drawnBuffer);
  }

  // The subject of a question under the isometry, drawn; null on the map.
  subjectSeen() {
    if (!this.subject) return null;
    const { before, after } = this.subject;
    const t = this.moment ?? 1;
    const y = (this.flip ? -1 : 1) * (before[1] + t * (after[1] - before[1]));
    return this.space.drawn(...this.space.image(this.isometry, before[0] + t * (after[0] - before[0]), y));
  }

  // Moves what is seen at (px, py) to (qx, qy), positions in the unit disk, as far as something is left to see.
  drag(px, py, qx, qy) {
    this.isometry = draggedBy(this, px, py, qx, qy);
    this.place(true);
    this.render(true);
  }

  // Magnifies by a factor around a position of the window, which is given in half widths.
  zoomAt(x, y, factor) {
    Object.assign(this, zoomedAt(this, x, y, factor));
    this.place(true);
    this.render(true);
  }

  // Dots in the order in which they are drawn; the hidden ones are left out.
  sort() {
    this.orders = new Map();
    this.order = byClass(this.picture, this.hidden);
  }

  // The same of the `most` most important ones, for a picture in motion.
  orderOf(most) {
    if (most >= this.classes.length) return this.order;
    const count = Math.round(2 ** (Math.round(4 * Math.log2(most)) / 4));
    if (!this.orders.has(count)) this.orders.set(count, byClass(this.picture, this.hidden, count));
    return this.orders.get(count);
  }

  // Other colours, or some switched off.
  recolour(classes, hidden, colouring = null) {
    this.picture = { ...this.picture, classes, colouring };
    this.classes = classes;
    this.hidden = hidden;
    this.sort();
    this.settle();
  }

  isShown(point) {
    return !this.hidden.size || !this.hidden.has(this.classes[point] & 7);
  }

  // How wide a text is; measuring is slow, and a moving picture writes the same names again and again.
  widthOf(text, height, context) {
    const key = `${height} ${text}`;
    if (!this.widths.has(key)) {
      if (this.widths.size > 2000) this.widths.clear();
      this.widths.set(key, context.measureText(text).width);
    }
    return this.widths.get(key);
  }

  // Glides along the geodesic until the point is in the middle; without `rest` another picture is about to follow.
  glideTo(point, { rest = true } = {}) {
    const start = this.isometry;
    const [x, y] = [this.moved[2 * point], this.moved[2 * point + 1]];
    const go = (t) => {
      this.isometry = this.space.compose(this.space.toMiddle(...this.space.share(x, y, t)), start);
      this.place(true);
      this.render(true);
    };
    if (still.matches) {
      go(1);
      this.settle();
      return Promise.resolve();
    }
    return this.animate(380, go, rest);
  }

  // Puts what was at a position of the picture as it came into the middle.
  goTo(x, y) {
    const there = this.space.undrawn(...[x, y].map((value) => Math.max(-0.96, Math.min(0.96, value))));
    this.stop();
    this.isometry = bounded(this.space, this.space.toMiddle(...there), this.reach, this.zoom, 0);
    this.place();
    this.settle();
  }

  undrag() {
    this.zoom = 1;
    this.moveTo(this.undragged);
  }

  // Puts the picture where it was under an isometry, at once.
  moveTo(isometry) {
    this.stop();
    this.isometry = isometry;
    this.place();
    this.settle();
  }

  // How much larger the picture is than it was made for.
  magnified() {
    return Math.max(1, this.zoom / (this.picture.zoom ?? 1));
  }

  isMagnified() {
    return this.zoom > 1.001;
  }

  isMoved() {
    return Math.abs(this.isometry[2]) + Math.abs(this.isometry[3]) > 1e-3;
  }

  animate(duration, step, rest = true) {
    const mine = (this.animation += 1);
    const began = performance.now();
    this.gliding = true;
    return new Promise((done) => {
      const frame = (now) => {
        if (mine !== this.animation) return done();
        const t = Math.min(Math.max((now - began) / duration, 0), 1);
        step(t * t * (3 - 2 * t));
        if (t < 1) return requestAnimationFrame(frame);
        if (rest) {
          this.gliding = false;
          this.settle();
        }
        return done();
      };
      requestAnimationFrame(frame);
    });
  }

  stop() {
    this.animation += 1;
    this.gliding = false;
  }

  // At rest everything is drawn; a glide comes to that at its end.
  settle() {
    if (this.isBehind) this.place();
    if (!this.gliding) this.render();
    this.mark(this.marks);
  }

  // Rings around these points and their edges; which names are written is decided again.
  mark(points) {
    this.marks = points;
    if (!this.picture) return;
    this.ownEdges = this.edges ? touching(this.edges, points) : [];
    if (!this.gliding) Object.assign(this, labelling(this));
    this.standing = Uint32Array.from(this.labels ?? []).sort((a, b) => this.classes[a] - this.classes[b]);
    this.ask();
  }

  // The point that keyboard or pointer is at, -1 for none.
  focus(point) {
    if (point === this.focused) return;
    this.focused = point;
    this.ask();
  }

  // The drawn point within `reach` CSS pixels of a position in the unit disk, -1 where there is none.
  at(x, y, reach) {
    if (!this.seen) return -1;
    let best = ((2 * reach) / (this.overlay.clientWidth * this.zoom)) ** 2;
    let found = -1;
    const last = 2 * Math.min(this.named, this.classes.length);
    for (let i = 0; i < last; i += 2) {
      const distance = (this.seen[i] - x) ** 2 + (this.seen[i + 1] - y) ** 2;
      if (distance < best && this.isShown(i / 2)) {
        best = distance;
        found = i / 2;
      }
    }
    return found;
  }

  // The points nearest to the middle of what is seen, nearest first.
  central(most) {
    const squares = new Float32Array(Math.min(this.named, this.classes.length));
    for (let i = 0; i < squares.length; i += 1) {
      squares[i] = this.isShown(i) ? this.seen[2 * i] ** 2 + this.seen[2 * i + 1] ** 2 : Infinity;
    }
    const limit = squares.slice().sort()[Math.min(most, squares.length) - 1];
    const found = [];
    for (let i = 0; i < squares.length; i += 1) if (squares[i] <= limit && squares[i] < Infinity) found.push(i);
    return found.sort((a, b) => squares[a] - squares[b]).slice(0, most);
  }

  // Draws all of it anew; `moving` saves what is only worth its time at rest.
  render(moving = false) {
    this.moving = moving;
    this.next = null;
    this.ask();
  }

  // Asks for a frame: of what lies above the dots, and below what is not drawn yet.
  ask() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame((now) => {
      this.pending = false;
      if (this.seen && this.width) this.paint(now); // or there is nothing to draw, or nowhere yet
    });
  }

  paint(now) {
    const look = this.look();
    const began = performance.now();
    if (this.next !== DONE && !drawUnderlay(this, look)) {
      this.ask();
      return;
    }
    drawOverlay(this, look);
    this.minimap?.draw();
    const work = performance.now() - began;
    if (this.moving) requestAnimationFrame((next) => this.pace.frame(next - now, this.sharpest, work));
  }
}
