// Order, colour and size of the dots.

// Points class by class, so that what matters lies on top: small norms on the map, the right answers of a question.
export function byClass(picture) {
  const { classes, kinds } = picture;
  const rank = kinds ? (c) => c : (c) => 7 - c;
  const places = new Uint32Array(9);
  for (const c of classes) places[rank(c) + 1] += 1;
  for (let i = 1; i < places.length; i += 1) places[i] += places[i - 1];
  const order = new Uint32Array(classes.length);
  classes.forEach((c, point) => {
    order[places[rank(c)]] = point;
    places[rank(c)] += 1;
  });
  return order;
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
