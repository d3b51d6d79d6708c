// Hand and keyboard on a disk.

const STEP = 0.12; // of the disk, an arrow key
const SHAKE = { mouse: 4, touch: 10 }; // CSS pixels that a click or tap may wander

// on: {choose(point), hover(point, x, y), leave(), dragged()}
export function startPointer(disk, on) {
  const canvas = disk.overlay;
  let held = null; // where the disk is held
  let pressed = [0, 0]; // where that began, on the screen
  let isDrag = false;

  const position = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(2 * (event.clientX - box.left)) / box.width - 1, 1 - (2 * (event.clientY - box.top)) / box.height];
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    disk.stop();
    canvas.setPointerCapture(event.pointerId);
    held = position(event);
    pressed = [event.clientX, event.clientY];
    isDrag = false;
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
    const away = Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]);
    isDrag ||= away > (SHAKE[event.pointerType] ?? SHAKE.touch);
    if (isDrag) {
      on.leave();
      disk.focused = -1;
      disk.drag(...held, ...now);
      held = now;
    }
  });

  canvas.addEventListener("pointerup", (event) => {
    if (!held) return;
    held = null;
    if (isDrag) {
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
