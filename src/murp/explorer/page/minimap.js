// Where the window is: the whole picture, small, as it came, and the outline of what is seen of it.

const SMALL = 92; // CSS pixels
const SAMPLED = 1500;
const OUTLINE = 120;

export class Minimap {
  constructor(canvas, disk, look, go) {
    Object.assign(this, { canvas, disk, look });
    this.sharpness = Math.min(devicePixelRatio || 1, 2);
    canvas.width = canvas.height = SMALL * this.sharpness;
    this.context = canvas.getContext("2d");
    this.still = document.createElement("canvas"); // the points, which stay where they are
    this.still.width = this.still.height = canvas.width;
    canvas.addEventListener("click", (event) => {
      const box = canvas.getBoundingClientRect();
      go((2 * (event.clientX - box.left)) / box.width - 1, 1 - (2 * (event.clientY - box.top)) / box.height);
    });
  }

  draw() {
    const { canvas, context, disk } = this;
    const isNeeded = disk.isMoved() || disk.isMagnified();
    canvas.hidden = !isNeeded;
    if (!isNeeded || !disk.base.length) return;
    const look = this.look();
    const half = canvas.width / 2;
    const at = ([x, y]) => [half + half * 0.96 * x, half - half * 0.96 * y];
    if (this.drawn?.base !== disk.base || this.drawn.look !== look) this.drawStill(look, half, at);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.drawImage(this.still, 0, 0);
    const back = disk.space.inverse(disk.isometry);
    context.beginPath();
    for (let i = 0; i <= OUTLINE; i += 1) {
      const [angle, radius] = [(2 * Math.PI * i) / OUTLINE, Math.min(1 / disk.zoom, 0.995)];
      const there = disk.space.undrawn(radius * Math.cos(angle), radius * Math.sin(angle));
      context.lineTo(...at(disk.space.drawn(...disk.space.image(back, ...there))));
    }
    context.strokeStyle = look.accent;
    context.lineWidth = 1.5 * this.sharpness;
    context.stroke();
    context.lineWidth = 1;
  }

  drawStill(look, half, at) {
    const { disk } = this;
    const context = this.still.getContext("2d");
    this.drawn = { base: disk.base, look };
    context.clearRect(0, 0, 2 * half, 2 * half);
    context.beginPath();
    context.arc(half, half, half * 0.96, 0, 2 * Math.PI);
    context.fillStyle = look.halo;
    context.fill();
    context.strokeStyle = look.text;
    context.stroke();
    context.fillStyle = look.edgeText;
    const last = Math.min(disk.base.length, 2 * SAMPLED);
    for (let i = 0; i < last; i += 2) {
      const [x, y] = at(disk.space.drawn(disk.base[i], disk.base[i + 1]));
      context.fillRect(x, y, this.sharpness, this.sharpness);
    }
  }
}
