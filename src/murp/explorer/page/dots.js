// Order, colour and size of the dots. A class is a colour (0 … 7) and, times eight, a step of size (0 … 3).

export const COLOURS = 8;
const CLASSES = 32;
const SIZES = [1, 1.5, 2.2, 3.2];

// The first `most` points class by class, so that what matters lies on top; those of hidden colours are left out.
export function byClass(picture, hidden, most = Infinity) {
  const { classes, kinds } = picture;
  const count = Math.min(classes.length, most);
  const rank = kinds ? (c) => c : (c) => (c & ~7) + 7 - (c & 7);
  const places = new Uint32Array(CLASSES + 1);
  for (let point = 0; point < count; point += 1) if (!hidden.has(classes[point] & 7)) places[rank(classes[point]) + 1] += 1;
  for (let i = 1; i < places.length; i += 1) places[i] += places[i - 1];
  const order = new Uint32Array(places[CLASSES]);
  for (let point = 0; point < count; point += 1) {
    const c = classes[point];
    if (hidden.has(c & 7)) continue;
    order[places[rank(c)]] = point;
    places[rank(c)] += 1;
  }
  return order;
}

// The eight colours of a picture: {numbers, texts}
export function coloursOf(picture, look) {
  if (picture.kinds) return { numbers: look.kinds, texts: look.kindTexts };
  return picture.colouring?.isCategory ? { numbers: look.groups, texts: look.groupTexts } : { numbers: look.levels, texts: look.levelTexts };
}

// A radius in steps of a twelfth: a stamp for each is kept, and a zoom would need others at every frame.
const stepped = (radius) => 2 ** (Math.round(8 * Math.log2(radius)) / 8);

// The radius of a point that stands out from the crowd.
export const prominentRadius = (disk, sharpness) => Math.min(3, 1.9 + 0.3 * Math.log2(disk.magnified())) * sharpness;

// Of these points in motion: the styles of their halos and, above them, of the dots.
export function prominentStyles(disk, look, sharpness) {
  const radius = stepped(prominentRadius(disk, sharpness));
  const { numbers } = coloursOf(disk.picture, look);
  const all = (style) => Array.from({ length: CLASSES }, (_, c) => ({ alpha: 1, ...style(c & 7) }));
  return [
    all(() => ({ colour: look.background, radius: radius + sharpness / 2 })),
    all((colour) => ({ colour: numbers[colour], radius: radius - sharpness / 2 })),
  ];
}

export function styles(disk, look, width) {
  const crowd = Math.min(2.2, Math.sqrt(9000 / Math.max(disk.classes.length, 1)));
  const small = stepped(Math.max(width * 0.0021 * crowd * Math.min(2.4, disk.magnified() ** 0.3), 0.7));
  const { numbers } = coloursOf(disk.picture, look);
  if (!disk.picture.kinds) {
    return Array.from({ length: CLASSES }, (_, c) => ({
      colour: numbers[c & 7], alpha: disk.picture.colouring ? 0.8 : 0.55, radius: small * SIZES[c >> 3],
    }));
  }
  const large = Math.max(width * 0.006, 2.4);
  return numbers.map((colour, i) => ({ colour, alpha: i ? 0.95 : 0.4, radius: i ? large : small }));
}
