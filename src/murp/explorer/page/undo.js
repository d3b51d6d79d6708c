// The views before this one, to go back to: drags and zooms too, which the browser's Back passes over.

const STEPS_KEPT = 200;
const before = [];
let now = null;

// The address of the view that is shown now.
export function keep(address) {
  if (address === now) return;
  if (now !== null) before.push(now);
  if (before.length > STEPS_KEPT) before.shift();
  now = address;
}

export const canUndo = () => before.length > 0;

// The address of the view before this one, null where there is none.
export function takeBack() {
  if (!before.length) return null;
  now = before.pop();
  return now;
}
