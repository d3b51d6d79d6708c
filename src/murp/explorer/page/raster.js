// Tens of thousands of dots and lines on a canvas: they are written into the pixels, one copy to the screen a frame.

const STEPS = 4; // a dot is placed to a quarter of a pixel

function blend(data, at, red, green, blue, cover) {
  data[at] += ((red - data[at]) * cover) / 256;
  data[at + 1] += ((green - data[at + 1]) * cover) / 256;
  data[at + 2] += ((blue - data[at + 2]) * cover) / 256;
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

export class Raster {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false, desynchronized: true });
    this.stamps = new Map();
  }

  resize(size) {
    this.canvas.width = size;
    this.canvas.height = size;
    this.image = this.context.createImageData(size, size);
    this.words = new Uint32Array(this.image.data.buffer);
  }

  clear([red, green, blue]) {
    this.words.fill((255 << 24) | (blue << 16) | (green << 8) | red);
  }

  show() {
    this.context.putImageData(this.image, 0, 0);
  }

  // A path of `length` positions in the unit disk, a pixel wide.
  line(path, length, [red, green, blue], alpha) {
    const size = this.canvas.width;
    const half = size / 2;
    const data = this.image.data;
    const full = 256 * alpha;
    for (let i = 1; i < length; i += 1) {
      const x = half + half * path[2 * i - 2];
      const y = half - half * path[2 * i - 1];
      const dx = half * (path[2 * i] - path[2 * i - 2]);
      const dy = half * (path[2 * i - 1] - path[2 * i + 1]);
      const flat = Math.abs(dx) > Math.abs(dy);
      const steps = Math.max(1, Math.round(flat ? Math.abs(dx) : Math.abs(dy)));
      const next = flat ? 4 * size : 4;
      for (let step = 0; step < steps; step += 1) {
        // The two pixels the line passes between share its cover.
        const X = x + (dx * step) / steps;
        const Y = y + (dy * step) / steps;
        const left = flat ? Math.round(X) : Math.floor(X);
        const top = flat ? Math.floor(Y) : Math.round(Y);
        if (left < 0 || top < 0 || left >= size - 1 || top >= size - 1) continue;
        const second = flat ? Y - top : X - left;
        const at = 4 * (top * size + left);
        blend(data, at, red, green, blue, full * (1 - second));
        blend(data, at + next, red, green, blue, full * second);
      }
    }
  }

  // points: drawn positions in the unit disk; order: their indices, bottom first; classes: of each point;
  // styles: [{colour: [r, g, b], alpha, radius}] a class.
  dots(points, order, classes, styles) {
    const size = this.canvas.width;
    const half = size / 2;
    const data = this.image.data;
    const prepared = styles.map((style) => this.prepare(style, size));
    for (let n = 0; n < order.length; n += 1) {
      const point = order[n];
      const { reach, all, red, green, blue } = prepared[classes[point]];
      const x = half + half * points[2 * point];
      const y = half - half * points[2 * point + 1];
      const left = Math.floor(x);
      const top = Math.floor(y);
      if (left < reach || top < reach || left >= size - reach || top >= size - reach) continue;
      const cells = all[Math.floor((y - top) * STEPS) * STEPS + Math.floor((x - left) * STEPS)];
      const origin = 4 * (top * size + left);
      for (let i = 0; i < cells.length; i += 2) {
        blend(data, origin + cells[i], red, green, blue, cells[i + 1]);
      }
    }
  }

  // The stamp of a style with offsets into the pixels and covers of 0 … 256, kept until the size changes.
  prepare(style, size) {
    const key = `${style.radius.toFixed(2)} ${style.alpha} ${size}`;
    if (!this.stamps.has(key)) {
      if (this.stamps.size > 60) this.stamps.clear();
      const { reach, all } = stamps(style.radius);
      const flat = all.map((cells) => {
        const numbers = new Int32Array(2 * cells.length);
        cells.forEach(([x, y, cover], i) => {
          numbers[2 * i] = 4 * (y * size + x);
          numbers[2 * i + 1] = Math.round(256 * cover * style.alpha);
        });
        return numbers;
      });
      this.stamps.set(key, { reach: reach + 1, all: flat });
    }
    const [red, green, blue] = style.colour;
    return { ...this.stamps.get(key), red, green, blue };
  }
}
