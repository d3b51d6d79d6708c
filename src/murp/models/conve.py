"""ConvE: a small convolutional network up to the query."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch.nn.functional import conv2d, dropout, dropout2d, relu

from murp.errors import ConfigError
from murp.models.model import Query, Rows, Table
from murp.models.shared.dot_product import DotProduct
from murp.models.shared.normalisation import BatchNorm
from murp.settings import Span, again, setting

KERNEL = 3


class ConvE(DotProduct):
    """ConvE: φ = ⟨f(vec(f([s̄; r̄] * ω)) W), o⟩ + b_o, f = max(·, 0).

    s̄ and r̄ are the rows of subject and relation as pictures (h, w) with h w = d, one above the other; ω are filters
    (channels, 3, 3), W a matrix (channels (2h - 2)(w - 2), d). Inputs, pictures and query are normalised by batch, and
    in training there is dropout on each. The query is (B, d).

    Dettmers, Minervini, Stenetorp, Riedel: Convolutional 2D Knowledge Graph Embeddings, AAAI 2018.
    """

    channels: int = setting(32, "filters of the convolution", least=1)
    input_dropout: float = setting(0.2, "dropout rate of the inputs", least=0, below=1, search=Span(0, 0.5))
    picture_dropout: float = setting(0.2, "dropout rate of the feature maps", least=0, below=1, search=Span(0, 0.5))
    query_dropout: float = again(0.3, search=Span(0, 0.5))
    keeps_statistics = True
    usual: ClassVar[Mapping[str, Any]] = {
        "objective": "k-vs-all",
        "label_smoothing": 0.1,
        "optimizer": "adam",
        "lr": 0.001,
        "batch_size": 128,
    }

    @classmethod
    def refuse(cls, config: Any) -> None:
        super().refuse(config)
        picture(config.dim)

    def declare(self) -> tuple[Table, ...]:
        d, n = self.dim, self.channels
        self.height, self.width = picture(d)
        self.of_input, self.of_picture = BatchNorm("input_norm", 1), BatchNorm("picture_norm", n)
        self.of_query = BatchNorm("query_norm", d)
        hidden = n * (2 * self.height - KERNEL + 1) * (self.width - KERNEL + 1)
        return (
            Table("entity", "entity", (d,), initial="xavier"),
            Table("object_bias", "entity", (), initial="zero", roles=("object",)),
            Table("relation", "relation", (d,), initial="xavier"),
            Table("filters", "shared", (n, KERNEL * KERNEL), initial="xavier"),
            Table("filter_offset", "shared", (n,), initial="zero"),
            Table("weight", "shared", (hidden, d), initial="xavier"),
            Table("offset", "shared", (d,), initial="zero"),
            *self.of_input.tables(),
            *self.of_picture.tables(),
            *self.of_query.tables(),
        )

    @property
    def uses_chance(self) -> bool:
        return super().uses_chance or max(self.input_dropout, self.picture_dropout) > 0

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        x = torch.cat([subject["entity"], relation["relation"]], -1).view(-1, 1, 2 * self.height, self.width)
        x = dropout(self.of_input(self, x, shared), self.input_dropout, self.training)
        x = conv2d(x, shared["filters"].view(-1, 1, KERNEL, KERNEL), shared["filter_offset"])
        x = dropout2d(relu(self.of_picture(self, x, shared)), self.picture_dropout, self.training)
        q = dropout(x.flatten(1) @ shared["weight"] + shared["offset"], self.query_dropout, self.training)
        return Query((relu(self.of_query(self, q, shared)),))


def picture(dim: int) -> tuple[int, int]:
    """Height and width, as nearly equal as d allows, the height no more than the width."""
    height = next(h for h in range(math.isqrt(dim), 0, -1) if dim % h == 0)
    width = dim // height
    if 2 * height < KERNEL or width < KERNEL:
        raise ConfigError(
            f"ConvE makes a picture of dim = {dim} numbers, and {height} by {width} is too small for its filters. "
            "Choose a dim with two factors, as 40 = 5 · 8."
        )
    return height, width
