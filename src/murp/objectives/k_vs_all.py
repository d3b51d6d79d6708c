"""Every entity is a candidate; all answers to a question are trained at once."""

from __future__ import annotations

from murp.objectives.one_vs_all import OneVsAll


class KVsAll(OneVsAll):
    """A question (s, r, ?) is asked once an epoch, with all its answers among the training facts.

    The formulas are those of :class:`OneVsAll`. With cross-entropy a question's m answers have the same share, 1/m.
    A batch has ``batch_size`` questions.

    Dettmers, Minervini, Stenetorp, Riedel: Convolutional 2D knowledge graph embeddings, AAAI 2018.
    """

    grouped = True
