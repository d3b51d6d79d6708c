// Hand and keyboard on a disk.

const STEP = 0.12; // of the disk, an arrow key

// on: {choose(point), hover(point, event), leave(), dragged()}
export function startPointer(disk, on) {
  const canvas = disk.overlay;
  let held = null;
  let travelled = 0;

  const position = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(2 * (event.clientX - box.left)) / box.width - 1, 1 - (2 * (event.clientY - box.top)) / box.height];
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    disk.stop();
    canvas.setPointerCapture(event.pointerId);
    held = position(event);
    travelled = 0;
  });

  canvas.addEventListener("pointermove", (event) => {
    const now = position(event);
    if (!held) {
      const point = disk.at(...now, 9);
      disk.focus(point);
      canvas.style.cursor = point < 0 ? "grab" : "pointer";
      if (point < 0) on.leave();
      else on.hover(point, event.clientX, event.clientY);
      return;
    }
    travelled += Math.hypot(now[0] - held[0], now[1] - held[1]) * canvas.clientWidth;
    if (travelled > 8) {
      on.leave();
      disk.focused = -1;
      disk.drag(...held, ...now);
      held = now;
    }
  });

  canvas.addEventListener("pointerup", (event) => {
    if (!held) return;
    held = null;
    if (travelled > 8) {
      disk.settle();
      on.dragged();
      return;
    }
    const point = disk.at(...position(event), event.pointerType === "touch" ? 18 : 10);
    if (point >= 0) on.choose(point);
    else disk.settle(); // a glide may have been stopped
  });

  canvas.addEventListener("pointercancel", () => {
    held = null;
    disk.settle();
  });
  canvas.addEventListener("pointerleave", () => {
    disk.focus(-1);
    on.leave();
  });

  canvas.addEventListener("keydown", (event) => {
    const arrows = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
    const key = event.key;
    if (key in arrows) {
      // The view goes the way of the arrow, so the points go the other.
      disk.drag(0, 0, -arrows[key][0], -arrows[key][1]);
      disk.settle();
      on.dragged();
    } else if (key === "n" || key === "p") {
      const near = disk.central(60);
      const at = near.indexOf(disk.focused);
      disk.focus(near[(at + (key === "n" ? 1 : near.length - 1) + (at < 0 && key === "p" ? 1 : 0)) % near.length]);
      const box = canvas.getBoundingClientRect();
      const [x, y] = [disk.seen[2 * disk.focused], disk.seen[2 * disk.focused + 1]];
      on.hover(disk.focused, box.left + ((1 + x) * box.width) / 2, box.top + ((1 - y) * box.height) / 2);
    } else if (key === "Enter" && disk.focused >= 0) {
      on.choose(disk.focused);
    } else if (key === "Home") {
      disk.undrag();
      on.dragged();
    } else if (key === "Escape") {
      disk.focus(-1);
      on.leave();
    } else {
      return;
    }
    event.preventDefault();
  });
  canvas.addEventListener("blur", () => on.leave());
}
