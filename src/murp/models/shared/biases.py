"""What is added to minus the squared distance (the paper's Table 2, right)."""

from __future__ import annotations

from typing import Literal, get_args

from murp.geometry import Euclidean
from murp.models.model import Table

Bias = Literal[
    "both",  # b_s + b_o, the published model
    "head",  # b_s
    "tail",  # b_o
    "norm",  # |e_s|² + |e_o|²
    "transformed-norm",  # |e_s^(r)|² + |e_o^(r)|²
]
BIASES: tuple[Bias, ...] = get_args(Bias)


def bias_tables(bias: Bias) -> tuple[Table, ...]:
    """A learned scalar for every entity in its role as subject, as object, or both; none for the norms."""
    tables = []
    if bias in ("both", "head"):
        tables.append(Table("subject_bias", "entity", (), Euclidean(), "zero", ("subject",)))
    if bias in ("both", "tail"):
        tables.append(Table("object_bias", "entity", (), Euclidean(), "zero", ("object",)))
    return tuple(tables)
