// Order, colour and size of the dots.

// Points by class, so that what matters lies on top: small norms on the map, the right answers of a question.
export function byClass(picture) {
  const order = new Uint32Array(picture.classes.length);
  for (let i = 0; i < order.length; i += 1) order[i] = i;
  const rank = picture.kinds ? (c) => c : (c) => 7 - c;
  return order.sort((a, b) => rank(picture.classes[a]) - rank(picture.classes[b]));
}

export function styles(disk, look, width) {
  const crowd = Math.min(2.2, Math.sqrt(9000 / Math.max(disk.classes.length, 1)));
  const small = Math.max(width * 0.0021 * crowd, 0.7);
  if (!disk.picture.kinds) {
    return look.levels.map((colour, i) => ({ colour, alpha: 0.85, radius: small * (1.5 - i * 0.06) }));
  }
  const large = Math.max(width * 0.006, 2.4);
  return look.kinds.map((colour, i) => ({ colour, alpha: i ? 0.95 : 0.4, radius: i ? large : small }));
}
