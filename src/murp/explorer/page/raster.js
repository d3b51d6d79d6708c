// Tens of thousands of dots and lines on a canvas: they are written into the pixels, one copy to the screen a frame.
//
// A pixel is one word, 0xAABBGGRR. Two products mix a colour into it: red and blue together, eight bits apart from
// each other, and green. A half is added before the eight bits below the point are cut off.

const STEPS = 4; // a dot is placed to a quarter of a pixel
const RED_BLUE = 0xff00ff;
const GREEN = 0x00ff00;
const OPAQUE = 0xff000000;
const HALVES = 0x800080;

// The words of `keep` 256ths of a pixel and a share of another colour, times 256.
function mixed(word, keep, redBlue, green) {
  const a = ((Math.imul(word & RED_BLUE, keep) + redBlue) >>> 8) & RED_BLUE;
  const b = (Math.imul((word >>> 8) & 0xff, keep) + green) & GREEN;
  return OPAQUE | a | b;
}

function stamps(radius) {
  const reach = Math.ceil(radius + 1);
  const all = [];
  for (let sy = 0; sy < STEPS; sy += 1) {
    for (let sx = 0; sx < STEPS; sx += 1) {
      const cells = [];
      for (let y = -reach; y <= reach; y += 1) {
        for (let x = -reach; x <= reach; x += 1) {
          const distance = Math.hypot(x + 0.5 - sx / STEPS, y + 0.5 - sy / STEPS);
          const cover = Math.min(Math.max(radius + 0.5 - distance, 0), 1);
          if (cover > 0.04) cells.push([x, y, cover]);
        }
      }
      all.push(cells);
    }
  }
  return { reach, all };
}

// Of the disk in size × size pixels: where it begins in a row, and [pixel, its word's share of the cover, …] of those cut.
function rimOf(size) {
  const half = size / 2;
  const begins = new Uint32Array(size);
  const cut = [];
  for (let y = 0; y < size; y += 1) {
    for (let x = 0; x < half; x += 1) {
      const cover = half + 0.5 - Math.hypot(x + 0.5 - half, y + 0.5 - half);
      if (cover >= 1) break;
      if (cover <= 0) begins[y] = x + 1;
      else for (const at of [x, size - 1 - x]) cut.push(y * size + at, Math.round(255 * cover) << 24);
    }
  }
  return { begins, cut: Int32Array.from(cut) };
}

export class Raster {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.images = new Map();
    this.stamps = new Map();
  }

  // Begins a picture of size × size pixels; the canvas keeps the last one until `show`.
  begin(size, [red, green, blue], zoom = 1) {
    this.zoom = zoom;
    if (size !== this.size) {
      if (!this.images.has(size)) {
        if (this.images.size > 1) this.images.clear(); // the sizes in motion and at rest are enough
        this.images.set(size, { image: this.context.createImageData(size, size), rim: rimOf(size) });
      }
      this.size = size;
      Object.assign(this, this.images.get(size));
      this.words = new Uint32Array(this.image.data.buffer);
    }
    this.words.fill(OPAQUE | (blue << 16) | (green << 8) | red);
  }

  show() {
    this.round();
    if (this.canvas.width !== this.size) this.canvas.width = this.canvas.height = this.size;
    this.context.putImageData(this.image, 0, 0);
  }

  // Cuts the picture to its disk. A browser without a GPU takes half of its own time of a frame to do this by a style.
  round() {
    const { size, words, rim } = this;
    for (let y = 0; y < size; y += 1) {
      words.fill(0, y * size, y * size + rim.begins[y]);
      words.fill(0, (y + 1) * size - rim.begins[y], (y + 1) * size);
    }
    for (let i = 0; i < rim.cut.length; i += 2) words[rim.cut[i]] = (words[rim.cut[i]] & 0xffffff) | rim.cut[i + 1];
  }

  // A path of `length` positions in the unit disk, a pixel wide. Along a piece positions are counted in 65536ths.
  // quick: in motion, one pixel a step where two would share it
  line(path, length, [red, green, blue], alpha, quick = false) {
    const { size, words } = this;
    const half = size / 2;
    const unit = half * this.zoom;
    const full = Math.round(256 * alpha);
    const redBlue = (blue << 16) | red;
    const whole = Math.imul(redBlue, full) + HALVES;
    for (let i = 1; i < length; i += 1) {
      const x = half + unit * path[2 * i - 2];
      const y = half - unit * path[2 * i - 1];
      const dx = unit * (path[2 * i] - path[2 * i - 2]);
      const dy = unit * (path[2 * i - 1] - path[2 * i + 1]);
      if (Math.max(x, x + dx) < 0 || Math.min(x, x + dx) > size || Math.max(y, y + dy) < 0 || Math.min(y, y + dy) > size) continue;
      const flat = Math.abs(dx) > Math.abs(dy);
      const steps = Math.max(1, Math.round(flat ? Math.abs(dx) : Math.abs(dy)));
      const further = flat ? 1 : size; // words to the next pixel along the line, and across it
      const next = flat ? size : 1;
      const along = Math.round((65536 * (flat ? dx : dy)) / steps);
      const across = Math.round((65536 * (flat ? dy : dx)) / steps);
      // Steps before the canvas and behind it are left out: of a magnified picture most are.
      const begin = flat ? x : y;
      const way = flat ? dx : dy;
      const [near, far] = [(0 - begin) / (way || 1), (size - begin) / (way || 1)];
      const skip = way === 0 ? 0 : Math.max(0, Math.floor(steps * Math.min(near, far)));
      const stop = way === 0 ? steps : Math.min(steps, Math.ceil(steps * Math.max(near, far)));
      let u = Math.round(65536 * begin) + 32768 + along * skip; // along the line the nearest pixel, across it the one before
      let v = Math.round(65536 * (flat ? y : x)) + across * skip;
      for (let step = skip; step < stop; step += 1, u += along, v += across) {
        // The two pixels the line passes between share its cover.
        const a = u >> 16;
        const b = v >> 16;
        if (a < 0 || b < 0 || a >= size - 1 || b >= size - 1) continue;
        if (quick) {
          const pixel = a * further + b * next;
          words[pixel] = mixed(words[pixel], 256 - full, whole, green * full + 128);
          continue;
        }
        const second = (full * ((v >> 8) & 0xff) + 128) >> 8;
        const first = full - second;
        const at = a * further + b * next;
        words[at] = mixed(words[at], 256 - first, Math.imul(redBlue, first) + HALVES, green * first + 128);
        words[at + next] = mixed(words[at + next], 256 - second, Math.imul(redBlue, second) + HALVES, green * second + 128);
      }
    }
  }

  // points: drawn positions in the unit disk; order: their indices, bottom first and class by class; classes: of each
  // point; styles: [{colour: [r, g, b], alpha, radius}] a class.
  dots(points, order, classes, styles) {
    const { size, words } = this;
    const half = size / 2;
    const unit = half * this.zoom;
    let current = -1;
    let all = null;
    let reach = 0;
    for (let n = 0; n < order.length; n += 1) {
      const point = order[n];
      if (classes[point] !== current) {
        current = classes[point];
        ({ all, reach } = this.prepare(styles[current]));
      }
      const x = half + unit * points[2 * point];
      const y = half - unit * points[2 * point + 1];
      const left = Math.floor(x);
      const top = Math.floor(y);
      if (!(left >= reach && top >= reach && left < size - reach && top < size - reach)) continue; // nor a point that is nowhere
      const cells = all[Math.floor((y - top) * STEPS) * STEPS + Math.floor((x - left) * STEPS)];
      const origin = top * size + left;
      for (let i = 0; i < cells.length; i += 4) {
        const at = origin + cells[i];
        words[at] = mixed(words[at], cells[i + 1], cells[i + 2], cells[i + 3]);
      }
    }
  }

  // The stamp of a style as [offset into the words, what it keeps of them, its red and blue, its green] a pixel.
  prepare(style) {
    const { size } = this;
    const [red, green, blue] = style.colour;
    const key = `${style.radius.toFixed(2)} ${style.alpha} ${style.colour} ${size}`;
    if (!this.stamps.has(key)) {
      if (this.stamps.size > 300) this.stamps.clear();
      const { reach, all } = stamps(style.radius);
      const flat = all.map((cells) => {
        const numbers = new Int32Array(4 * cells.length);
        cells.forEach(([x, y, cover], i) => {
          const share = Math.round(256 * cover * style.alpha);
          numbers.set([y * size + x, 256 - share, Math.imul((blue << 16) | red, share) + HALVES, green * share + 128], 4 * i);
        });
        return numbers;
      });
      this.stamps.set(key, { reach: reach + 1, all: flat });
    }
    return this.stamps.get(key);
  }
}
