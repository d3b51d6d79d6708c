"""Every model's score of one triple, from its paper's formula, in plain Python and mpmath: no tensor, no product form.

A judge is given the rows of the tables as lists of 30-digit numbers: ``s`` of the subject, ``r`` of the relation, ``o``
of the object, ``w`` the shared ones; and the settings of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
from mpmath import mpf

Row = dict[str, Any]
JUDGES: dict[str, Callable[[Row, Row, Row, Row, Any], Any]] = {}


def judge(*names: str) -> Callable[[Any], Any]:
    def named(function: Any) -> Any:
        JUDGES.update(dict.fromkeys(names, function))
        return function

    return named


def dot(x: Any, y: Any) -> Any:
    return mpmath.fsum(a * b for a, b in zip(x, y, strict=True))


def plus(x: Any, y: Any) -> list[Any]:
    return [a + b for a, b in zip(x, y, strict=True)]


def minus(x: Any, y: Any) -> list[Any]:
    return [a - b for a, b in zip(x, y, strict=True)]


def scaled(a: Any, x: Any) -> list[Any]:
    return [a * b for b in x]


def norm(x: Any) -> Any:
    return mpmath.sqrt(dot(x, x))


def through(matrix: Any, x: Any) -> list[Any]:
    return [dot(row, x) for row in matrix]


def complexes(x: Any) -> list[Any]:
    """The first half the real parts, the second the imaginary ones."""
    half = len(x) // 2
    return [mpmath.mpc(a, b) for a, b in zip(x[:half], x[half:], strict=True)]


def reals(z: Any) -> list[Any]:
    return [one.real for one in z] + [one.imag for one in z]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


# The ball, as the papers print it.


def mobius(x: Any, y: Any, c: Any) -> list[Any]:
    xx, yy, xy = dot(x, x), dot(y, y), dot(x, y)
    below = 1 + 2 * c * xy + c * c * xx * yy
    return [((1 + 2 * c * xy + c * yy) * a + (1 - c * xx) * b) / below for a, b in zip(x, y, strict=True)]


def exp0(v: Any, c: Any) -> list[Any]:
    length = mpmath.sqrt(c) * norm(v)
    return scaled(mpmath.tanh(length) / length, v)


def log0(x: Any, c: Any) -> list[Any]:
    length = mpmath.sqrt(c) * norm(x)
    return scaled(mpmath.atanh(length) / length, x)


def distance(x: Any, y: Any, c: Any) -> Any:
    return 2 / mpmath.sqrt(c) * mpmath.atanh(mpmath.sqrt(c) * norm(mobius(scaled(-1, x), y, c)))


# Flat models.


@judge("transe")
def transe(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    apart = minus(plus(s["entity"], r["relation"]), o["entity"])
    return model.gamma - (norm(apart) if model.norm == 2 else mpmath.fsum(abs(a) for a in apart))


@judge("stranse")
def stranse(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    one = plus(through(r["subject_matrix"], s["entity"]), r["relation"])
    apart = minus(one, through(r["object_matrix"], o["entity"]))
    return model.gamma - (norm(apart) if model.norm == 2 else mpmath.fsum(abs(a) for a in apart))


@judge("ftranse")
def ftranse(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    return dot(plus(s["entity"], r["relation"]), o["entity"]) + dot(s["entity"], minus(o["entity"], r["relation"]))


@judge("distmult")
def distmult(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    return mpmath.fsum(a * b * c for a, b, c in zip(s["entity"], r["relation"], o["entity"], strict=True))


@judge("complex")
def complex_(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    triples = zip(complexes(s["entity"]), complexes(r["relation"]), complexes(o["entity"]), strict=True)
    return mpmath.re(mpmath.fsum(a * b * mpmath.conj(c) for a, b, c in triples))


@judge("rescal")
def rescal(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    return dot(through(r["matrix"], s["entity"]), o["entity"])


@judge("rotate")
def rotate(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    turns = [mpmath.expj(mpmath.pi * p) for p in r["phase"]]
    triples = zip(complexes(s["entity"]), turns, complexes(o["entity"]), strict=True)
    return model.gamma - mpmath.fsum(abs(a * b - c) for a, b, c in triples)


def normalised(x: Any, name: str, w: Row, features: Any) -> list[Any]:
    """Of the running mean and variance; ``features`` says of each number which feature it is of."""
    weight, offset, mean, variance = (w[f"{name}_{what}"] for what in ("weight", "offset", "mean", "variance"))
    return [
        (a - mean[i]) / mpmath.sqrt(variance[i] + mpf("1e-5")) * weight[i] + offset[i]
        for a, i in zip(x, features, strict=True)
    ]


@judge("tucker")
def tucker(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    d = len(s["entity"])
    x = normalised(s["entity"], "subject_norm", w, range(d))
    q = [
        mpmath.fsum(r["relation"][k] * w["core"][k][i][j] * x[j] for k in range(len(r["relation"])) for j in range(d))
        for i in range(d)
    ]
    return dot(normalised(q, "query_norm", w, range(d)), o["entity"])


@judge("conve")
def conve(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    d, height, width = len(s["entity"]), 2 * model.height, model.width
    flat = normalised(s["entity"] + r["relation"], "input_norm", w, [0] * (2 * d))
    hidden = []
    for n, (kernel, offset) in enumerate(zip(w["filters"], w["filter_offset"], strict=True)):
        for i in range(height - 2):
            for j in range(width - 2):
                seen = [flat[(i + a) * width + j + b] for a in range(3) for b in range(3)]
                (value,) = normalised([dot(seen, kernel) + offset], "picture_norm", w, [n])
                hidden.append(max(value, mpf(0)))
    q = [mpmath.fsum(h * row[i] for h, row in zip(hidden, w["weight"], strict=True)) + w["offset"][i] for i in range(d)]
    q = [max(a, mpf(0)) for a in normalised(q, "query_norm", w, range(d))]
    return dot(q, o["entity"]) + o["object_bias"]


def turned(x: Any, turn: Any, mirrored: bool) -> list[Any]:
    """Pairs (xᵢ, xᵢ₊ₖ) through the matrices (cos, -sin; sin, cos) or (cos, sin; sin, -cos)."""
    half = len(x) // 2
    first, second = [], []
    for i in range(half):
        angle = mpmath.atan2(turn[i + half], turn[i])
        c, n = mpmath.cos(angle), mpmath.sin(angle)
        a, b = x[i], x[i + half]
        first.append(c * a + n * b if mirrored else c * a - n * b)
        second.append(n * a - c * b if mirrored else n * a + c * b)
    return first + second


def attended(x: Any, r: Row) -> list[Any]:
    rotation, reflection = turned(x, r["turn"], False), turned(x, r["mirror"], True)
    root = mpmath.sqrt(len(x))
    one, other = (mpmath.exp(dot(r["attention"], y) / root) for y in (rotation, reflection))
    return plus(scaled(one / (one + other), rotation), scaled(other / (one + other), reflection))


def biased(squared: Any, s: Row, o: Row) -> Any:
    return s["subject_bias"] + o["object_bias"] - squared


def flat_distance(x: Any, s: Row, o: Row) -> Any:
    return biased(norm(minus(x, o["entity"])) ** 2, s, o)


@judge("rote")
def rote(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    return flat_distance(plus(turned(s["entity"], r["turn"], False), r["translation"]), s, o)


@judge("refe")
def refe(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    return flat_distance(plus(turned(s["entity"], r["turn"], True), r["translation"]), s, o)


@judge("atte")
def atte(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    return flat_distance(plus(attended(s["entity"], r), r["translation"]), s, o)


# On a ball whose curvature the relation has.


def curvature(r: Row, w: Row, model: Any) -> Any:
    p = {**w, **r}.get("curvature")
    return mpf(model.curvature) * (1 if p is None else mpmath.log(1 + mpmath.exp(p) * (mpmath.e - 1)))


def ball_distance(x: Any, c: Any, s: Row, o: Row) -> Any:
    return biased(distance(x, exp0(o["entity"], c), c) ** 2, s, o)


@judge("roth")
def roth(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    c = curvature(r, w, model)
    x = turned(mobius(exp0(s["entity"], c), exp0(r["first_translation"], c), c), r["turn"], False)
    return ball_distance(mobius(x, exp0(r["translation"], c), c), c, s, o)


def tangent(x: Any, r: Row, w: Row, s: Row, o: Row, model: Any) -> Any:
    c = curvature(r, w, model)
    return ball_distance(mobius(exp0(x, c), exp0(r["translation"], c), c), c, s, o)


@judge("refh")
def refh(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    return tangent(turned(s["entity"], r["turn"], True), r, w, s, o, model)


@judge("atth")
def atth(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    return tangent(attended(s["entity"], r), r, w, s, o, model)


@judge("roth-stretch")
def roth_stretch(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    stretched = [a * b for a, b in zip(r["stretch"], s["entity"], strict=True)]
    return tangent(turned(stretched, r["turn"], False), r, w, s, o, model)


@judge("riemannian-transe")
def riemannian_transe(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    """The point of the geodesic from s to p whose distance from s is ℓ, on the hyperboloid: no sum of Möbius."""
    c = mpf(model.curvature)
    one, towards, other = (on_hyperboloid(scaled(mpmath.sqrt(c), x)) for x in (s["entity"], r["towards"], o["entity"]))
    cosh = -lorentz(one, towards)
    unit = scaled(1 / mpmath.sqrt(cosh * cosh - 1), minus(towards, scaled(cosh, one)))
    length = mpmath.sqrt(c) * r["length"]
    moved = plus(scaled(mpmath.cosh(length), one), scaled(mpmath.sinh(length), unit))
    return model.gamma - mpmath.acosh(-lorentz(moved, other)) / mpmath.sqrt(c)


def on_hyperboloid(x: Any) -> list[Any]:
    """The point of the hyperboloid that a point of the ball, both of curvature -1, is the picture of."""
    xx = dot(x, x)
    return [(1 + xx) / (1 - xx), *scaled(2 / (1 - xx), x)]


def lorentz(x: Any, y: Any) -> Any:
    return dot(x[1:], y[1:]) - x[0] * y[0]


@judge("mixed-curvature")
def mixed_curvature(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    """On the sphere: the plane of the origin and the translation turned by the angle √c|r|, and an arccosine."""
    first, second = (mpf(model.curvature) * p for p in curvature_shares(r, w))
    moved = [a * b for a, b in zip(r["stretch"], s["entity"], strict=True)]
    (a, b, c), (p, q, t), (x, y, z) = (cut(values, model.widths) for values in (moved, r["translation"], o["entity"]))
    hyperbolic = distance(mobius(exp0(a, first), exp0(p, first), first), exp0(x, first), first)
    one, other = (on_sphere(scaled(mpmath.sqrt(second), values)) for values in (b, y))
    angle, along = mpmath.sqrt(second) * norm(q), scaled(1 / norm(q), q)
    up, side = one[0], dot(along, one[1:])
    cosine, sine = mpmath.cos(angle), mpmath.sin(angle)
    turned_up, turned_side = cosine * up - sine * side, sine * up + cosine * side
    one = [turned_up, *plus(one[1:], scaled(turned_side - side, along))]
    spherical = mpmath.acos(dot(one, other)) / mpmath.sqrt(second)
    flat = norm(minus(plus(c, t), z))
    return biased(hyperbolic**2 + spherical**2 + flat**2, s, o)


def curvature_shares(r: Row, w: Row) -> list[Any]:
    """What the two curvatures are times the setting."""
    learned = {**w, **r}.get("curvature", [None, None])
    return [mpf(1) if p is None else mpmath.log(1 + mpmath.exp(p) * (mpmath.e - 1)) for p in learned]


def cut(x: Any, widths: Any) -> list[Any]:
    ends = [sum(widths[: i + 1]) for i in range(len(widths))]
    return [x[end - width : end] for end, width in zip(ends, widths, strict=True)]


def on_sphere(v: Any) -> list[Any]:
    """The point of the unit sphere at the end of the great circle from (1, 0, …) with velocity (0, v)."""
    length = norm(v)
    return [mpmath.cos(length), *scaled(mpmath.sin(length) / length, v)]


@judge("mure", "mure-matrix", "mure-rotation")
def mure(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    x = mapped(s["entity"], r)
    return biased(norm(minus(x, plus(o["entity"], r["translation"]))) ** 2, s, o)


@judge("murp", "murp-matrix", "murp-rotation")
def murp(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    c = mpf(model.curvature)
    x = exp0(mapped(log0(s["entity"], c), r), c)
    return biased(distance(x, mobius(o["entity"], r["translation"], c), c) ** 2, s, o)


def mapped(x: Any, r: Row) -> list[Any]:
    """Through the relation's matrix; or stretched, and turned where it has a turn."""
    if "matrix" in r:
        return through(r["matrix"], x)
    stretched = [a * b for a, b in zip(r["subject_stretch"], x, strict=True)]
    return turned(stretched, r["turn"], False) if "turn" in r else stretched


@judge("hybonet")
def hybonet(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    """The squared Lorentzian distance ⟨x - y, x - y⟩, not through ⟨x, y⟩."""
    one, other = ([mpmath.sqrt(1 + dot(row["entity"], row["entity"])), *row["entity"]] for row in (s, o))
    y = plus(through(r["matrix"], one), r["offset"])
    time = mpf(1.1) + sigmoid(y[0]) * mpmath.exp(r["log_scale"])
    x = [time, *scaled(mpmath.sqrt(time * time - 1) / norm(y[1:]), y[1:])]
    apart = minus(x, other)
    return biased(dot(apart[1:], apart[1:]) - apart[0] ** 2, s, o)


@judge("poincare")
def poincare(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    """The paper's equation 1, by arcosh."""
    x, y = s["entity"], o["entity"]
    apart = minus(x, y)
    return -mpmath.acosh(1 + 2 * dot(apart, apart) / ((1 - dot(x, x)) * (1 - dot(y, y))))


@judge("lorentz")
def lorentz_embedding(s: Row, r: Row, o: Row, w: Row, model: Any) -> Any:
    """arcosh(-⟨x,y⟩); the time component is that of a point on the hyperboloid, not the rounded one."""
    x, y = s["entity"][1:], o["entity"][1:]
    return -mpmath.acosh(mpmath.sqrt((1 + dot(x, x)) * (1 + dot(y, y))) - dot(x, y))
