"""No regularizer, as in the paper."""

from __future__ import annotations

from torch import Tensor

from murp.models.model import Model
from murp.regularizers.regularizer import Batch, Regularizer


class Nothing(Regularizer):
    """Adds nothing."""

    reads_rows = False

    def term(self, model: Model, batch: Batch) -> Tensor | None:
        return None
