// Isometries of the Poincaré disk and of the plane, and how their points are drawn in the unit disk.
// Points lie in a Float32Array [x0, y0, x1, y1, …]; an isometry is four numbers.

const RIM = 0.99999;

// A position that rounding has put onto the rim, set back from it.
function held(x, y) {
  const radius = Math.hypot(x, y);
  return radius < RIM ? [x, y] : [(x * RIM) / radius, (y * RIM) / radius];
}

// The disk: z → (a z + b) / (b̄ z + ā) with a = m[0] + i m[1], b = m[2] + i m[3], |a|² - |b|² = 1.
export const poincare = {
  identity: () => [1, 0, 0, 0],
  rotation: (angle) => [Math.cos(angle / 2), Math.sin(angle / 2), 0, 0],

  // Takes (x, y) to the middle.
  toMiddle(x, y) {
    const scale = 1 / Math.sqrt(Math.max(1 - x * x - y * y, 1e-9));
    return [scale, 0, -x * scale, -y * scale];
  },

  // m after n; normalised, so that a long drag does not drift.
  compose(m, n) {
    const a = m[0] * n[0] - m[1] * n[1] + m[2] * n[2] + m[3] * n[3];
    const ai = m[0] * n[1] + m[1] * n[0] - m[2] * n[3] + m[3] * n[2];
    const b = m[0] * n[2] - m[1] * n[3] + m[2] * n[0] + m[3] * n[1];
    const bi = m[0] * n[3] + m[1] * n[2] - m[2] * n[1] + m[3] * n[0];
    const scale = 1 / Math.sqrt(Math.max(a * a + ai * ai - b * b - bi * bi, 1e-12));
    return [a * scale, ai * scale, b * scale, bi * scale];
  },

  inverse: (m) => [m[0], -m[1], -m[2], -m[3]],
  determinant: (m) => m[0] * m[0] + m[1] * m[1] - m[2] * m[2] - m[3] * m[3], // 1
  fromMiddle: (x, y) => 2 * Math.atanh(Math.min(Math.hypot(x, y), RIM)), // the distance, at curvature -1

  // One point.
  image([a, ai, b, bi], x, y) {
    const [u, v, p, q] = [a * x - ai * y + b, a * y + ai * x + bi, b * x + bi * y + a, b * y - bi * x - ai];
    const square = p * p + q * q;
    return held((u * p + v * q) / square, (v * p - u * q) / square);
  },

  // All points. The formula stands here once more, and not as a call: a loop that sees typed arrays alone is compiled to
  // seven times the speed of one that also sees others.
  apply(m, points, out) {
    const [a, ai, b, bi] = m;
    for (let i = 0; i < points.length; i += 2) {
      const x = points[i];
      const y = points[i + 1];
      const u = a * x - ai * y + b;
      const v = a * y + ai * x + bi;
      const p = b * x + bi * y + a;
      const q = b * y - bi * x - ai;
      const square = p * p + q * q;
      let X = (u * p + v * q) / square;
      let Y = (v * p - u * q) / square;
      const radius = X * X + Y * Y;
      if (!(radius < RIM * RIM)) {
        const back = RIM / Math.sqrt(radius);
        X *= back;
        Y *= back;
      }
      out[i] = X;
      out[i + 1] = Y;
    }
  },

  // The same way along the geodesic from the middle: a share of the distance to (x, y).
  share(x, y, t) {
    const radius = Math.min(Math.hypot(x, y), RIM);
    const scale = radius > 0 ? Math.tanh(t * Math.atanh(radius)) / radius : 0;
    return [x * scale, y * scale];
  },

  draw: (points) => points,
  drawn: (x, y) => [x, y],
  undrawn: (x, y) => [x, y],
};

// The plane: z → u z + t with u = m[0] + i m[1], t = m[2] + i m[3]; drawn at z / (1 + |z|).
export const euclidean = {
  identity: () => [1, 0, 0, 0],
  rotation: (angle) => [Math.cos(angle), Math.sin(angle), 0, 0],
  toMiddle: (x, y) => [1, 0, -x, -y],
  compose: (m, n) => [
    m[0] * n[0] - m[1] * n[1],
    m[0] * n[1] + m[1] * n[0],
    m[0] * n[2] - m[1] * n[3] + m[2],
    m[0] * n[3] + m[1] * n[2] + m[3],
  ],
  inverse: (m) => [m[0], -m[1], -m[0] * m[2] - m[1] * m[3], m[1] * m[2] - m[0] * m[3]],
  determinant: (m) => m[0] * m[0] + m[1] * m[1], // 1
  fromMiddle: (x, y) => Math.hypot(x, y),

  image: (m, x, y) => [m[0] * x - m[1] * y + m[2], m[0] * y + m[1] * x + m[3]],

  apply(m, points, out) {
    for (let i = 0; i < points.length; i += 2) {
      const x = points[i];
      const y = points[i + 1];
      out[i] = m[0] * x - m[1] * y + m[2];
      out[i + 1] = m[0] * y + m[1] * x + m[3];
    }
  },

  share: (x, y, t) => [x * t, y * t],

  draw(points, out) {
    for (let i = 0; i < points.length; i += 2) {
      const scale = 1 / (1 + Math.hypot(points[i], points[i + 1]));
      out[i] = points[i] * scale;
      out[i + 1] = points[i + 1] * scale;
    }
    return out;
  },

  drawn(x, y) {
    const scale = 1 / (1 + Math.hypot(x, y));
    return [x * scale, y * scale];
  },

  undrawn(x, y) {
    const scale = 1 / Math.max(1 - Math.hypot(x, y), 1e-3);
    return [x * scale, y * scale];
  },
};

// The isometry that carries what is at (px, py) to (qx, qy).
export function carry(space, px, py, qx, qy) {
  return space.compose(space.inverse(space.toMiddle(qx, qy)), space.toMiddle(px, py));
}

// The rotation, perhaps after a reflection y → -y, that brings `points` closest to `target` near the middle.
export function alignment(points, target) {
  let c = 0;
  let s = 0;
  let cf = 0;
  let sf = 0;
  for (let i = 0; i < points.length; i += 2) {
    const [x, y, X, Y] = [points[i], points[i + 1], target[i], target[i + 1]];
    const weight = 1 / (0.02 + x * x + y * y);
    c += weight * (x * X + y * Y);
    s += weight * (x * Y - y * X);
    cf += weight * (x * X - y * Y);
    sf += weight * (x * Y + y * X);
  }
  const flip = Math.hypot(cf, sf) > Math.hypot(c, s);
  return { flip, angle: flip ? Math.atan2(sf, cf) : Math.atan2(s, c) };
}

// The position itself, or the one of its direction that a hand can still hold.
export function inside(x, y) {
  const radius = Math.hypot(x, y);
  return radius > 0.96 ? [(x * 0.96) / radius, (y * 0.96) / radius] : [x, y];
}
