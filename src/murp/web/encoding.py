"""Answers as bytes."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murp.prediction.search import not_finite

TYPES = {"float32": "<f4", "uint32": "<u4", "uint8": "u1"}
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def to_json(value: Any) -> bytes:
    """JSON in ASCII; a NaN or an infinity, which JSON does not know, is an error."""
    try:
        return _ENCODER.encode(value).encode()
    except ValueError:
        raise not_finite() from None


def packed(values: NDArray[Any], kind: str) -> dict[str, Any]:
    """An array as JSON can hold it without spelling out every number: little-endian, row by row, in base64."""
    rows = np.ascontiguousarray(values, dtype=TYPES[kind])
    if kind == "float32" and not np.isfinite(rows).all():
        raise not_finite()
    return {"type": kind, "shape": list(rows.shape), "base64": base64.b64encode(rows.tobytes()).decode("ascii")}
