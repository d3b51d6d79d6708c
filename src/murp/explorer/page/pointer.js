// Hand and keyboard on a disk. Positions of the window are in its half widths; those of the disk are these less the zoom.

const STEP = 0.12; // of the window, an arrow key
const NEARER = 1.3; // a key or a button
const WHEEL = 0.0016; // a unit of a wheel's turn
const SHAKE = { mouse: 4, touch: 10 }; // CSS pixels that a click or tap may wander
const REST = 160; // ms without a turn of the wheel

// on: {choose(point), hover(point, x, y), leave(), dragged(), selected(points)}
export function startPointer(disk, on) {
  const canvas = disk.overlay;
  const fingers = new Map(); // held pointers, where they are in the window
  let pressed = [0, 0]; // where a hold began, on the screen
  let isDrag = false;
  let resting = 0;

  const position = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(2 * (event.clientX - box.left)) / box.width - 1, 1 - (2 * (event.clientY - box.top)) / box.height];
  };
  const inDisk = ([x, y]) => [x / disk.zoom, y / disk.zoom];
  const settle = () => {
    disk.settle();
    on.dragged();
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    disk.stop();
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, position(event));
    pressed = [event.clientX, event.clientY];
    isDrag = fingers.size > 1;
    disk.lasso = event.shiftKey ? [inDisk(position(event))] : null;
  });

  canvas.addEventListener("pointermove", (event) => {
    const now = position(event);
    const before = fingers.get(event.pointerId) ?? (fingers.size ? [...fingers.values()][0] : null);
    if (!before) {
      const point = disk.at(...inDisk(now), 9);
      disk.focus(point);
      canvas.style.cursor = point < 0 ? "grab" : "pointer";
      if (point < 0) on.leave();
      else on.hover(point, event.clientX, event.clientY);
      return;
    }
    const away = Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]);
    isDrag ||= away > (SHAKE[event.pointerType] ?? SHAKE.touch);
    if (!isDrag) return;
    on.leave();
    disk.focused = -1;
    const held = fingers.has(event.pointerId) ? event.pointerId : [...fingers.keys()][0];
    if (disk.lasso) {
      disk.lasso.push(inDisk(now));
      disk.ask();
    } else if (fingers.size === 2) {
      pinch(held, now);
    } else {
      disk.drag(...inDisk(before), ...inDisk(now));
    }
    fingers.set(held, now);
  });

  // Two fingers: what is between them stays between them.
  const pinch = (id, now) => {
    const [[, other]] = [...fingers].filter(([finger]) => finger !== id);
    const before = fingers.get(id);
    const apart = Math.max(Math.hypot(before[0] - other[0], before[1] - other[1]), 0.05);
    const middle = (a) => [(a[0] + other[0]) / 2, (a[1] + other[1]) / 2];
    disk.drag(...inDisk(middle(before)), ...inDisk(middle(now)));
    disk.zoomAt(...middle(now), Math.max(Math.hypot(now[0] - other[0], now[1] - other[1]), 0.05) / apart);
  };

  canvas.addEventListener("pointerup", (event) => {
    if (!fingers.size) return;
    fingers.delete(event.pointerId);
    if (fingers.size) return; // the other finger goes on
    const lasso = disk.lasso;
    disk.lasso = null;
    if (isDrag && lasso) {
      disk.settle();
      on.selected(within(disk, lasso));
    } else if (isDrag) {
      settle();
    } else {
      const point = disk.at(...inDisk(position(event)), event.pointerType === "touch" ? 18 : 10);
      if (point >= 0 && event.shiftKey) on.selected([point]);
      else if (point >= 0) on.choose(point);
      else disk.settle(); // a glide may have been stopped
    }
  });

  canvas.addEventListener("pointercancel", (event) => {
    fingers.delete(event.pointerId);
    disk.lasso = null;
    disk.settle();
  });
  canvas.addEventListener("pointerleave", () => {
    disk.focus(-1);
    on.leave();
  });

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    disk.stop();
    const lines = event.deltaMode === 1 ? 24 : 1;
    disk.zoomAt(...position(event), Math.exp(-WHEEL * lines * event.deltaY * (event.ctrlKey ? 4 : 1)));
    clearTimeout(resting);
    resting = setTimeout(settle, REST);
  }, { passive: false });

  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrows = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
    const zooms = { "+": NEARER, "=": NEARER, "-": 1 / NEARER, "_": 1 / NEARER, 0: 0 };
    const key = event.key;
    if (key in arrows) {
      // The view goes the way of the arrow, so the points go the other.
      disk.drag(0, 0, ...inDisk([-arrows[key][0], -arrows[key][1]]));
      settle();
    } else if (key in zooms) {
      disk.zoomAt(0, 0, zooms[key]);
      settle();
    } else if (key === "n" || key === "p") {
      const near = disk.central(60);
      const at = near.indexOf(disk.focused);
      disk.focus(near[(at + (key === "n" ? 1 : near.length - 1) + (at < 0 && key === "p" ? 1 : 0)) % near.length]);
      const box = canvas.getBoundingClientRect();
      const [x, y] = [disk.zoom * disk.seen[2 * disk.focused], disk.zoom * disk.seen[2 * disk.focused + 1]];
      on.hover(disk.focused, box.left + ((1 + x) * box.width) / 2, box.top + ((1 - y) * box.height) / 2);
    } else if (key === "Enter" && disk.focused >= 0) {
      on.choose(disk.focused);
    } else if (key === "x" && disk.focused >= 0) {
      on.selected([disk.focused]);
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

// The named points inside a closed line, the most important first.
function within(disk, line) {
  const found = [];
  for (let point = 0; point < Math.min(disk.named, disk.classes.length); point += 1) {
    const [x, y] = [disk.seen[2 * point], disk.seen[2 * point + 1]];
    let isIn = false;
    for (let i = 0, j = line.length - 1; i < line.length; j = i, i += 1) {
      const [[a, b], [c, d]] = [line[i], line[j]];
      if (b > y !== d > y && x < ((c - a) * (y - b)) / (d - b) + a) isIn = !isIn;
    }
    if (isIn && disk.isShown(point)) found.push(point);
  }
  return found;
}
