"""Metrics of ranks: mean reciprocal rank, mean rank, Hits@k, overall and by group."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murp.evaluation.intervals import Interval, intervals
from murp.evaluation.ranks import Protocol, Ranks
from murp.graph import Split
from murp.rows import Tabular

HITS = (1, 3, 10)


@dataclass(frozen=True)
class Metrics:
    """Means over ``queries`` ranks; None if there are none.

    ``mrr`` is the mean of 1 / rank, ``mr`` the mean rank, ``hits[k]`` the share of ranks that are at most k.
    ``protocol`` also names the number of candidates, if they were sampled. Then ``ranks`` (n, 1 or 2) are kept, a row
    for each fact, and metrics have intervals.
    """

    protocol: str
    mrr: float | None
    mr: float | None
    hits: dict[int, float | None]
    queries: int
    ranks: NDArray[np.float64] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, ranks: NDArray[np.float64], protocol: str, *, sampled: bool = False) -> Metrics:
        kept = ranks if sampled else None
        if len(ranks) == 0:
            return cls(protocol, None, None, dict.fromkeys(HITS), 0, kept)
        return cls(
            protocol,
            mrr=float(np.mean(1 / ranks)),
            mr=float(np.mean(ranks)),
            hits={k: float(np.mean(ranks <= k)) for k in HITS},
            queries=ranks.size,
            ranks=kept,
        )

    @cached_property
    def intervals(self) -> dict[str, Interval | None]:
        """The 95 % intervals of ``mrr`` and each ``hits@k`` under protocol ``sampled``; none under others.

        Computed when first used: a graph may have many relations.
        """
        return {} if self.ranks is None else intervals(self.ranks, HITS)

    def to_dict(self) -> dict[str, Any]:
        """``mrr``, ``mr``, ``hits@1``, ``hits@3``, ``hits@10``, ``queries``, and ``intervals`` where there are some."""
        hits = {f"hits@{k}": share for k, share in self.hits.items()}
        spread = {"intervals": dict(self.intervals)} if self.intervals else {}
        return {"mrr": self.mrr, "mr": self.mr, **hits, "queries": self.queries, **spread}

    def columns(self) -> dict[str, Any]:
        """The same for a row of a table, an interval as two columns, ``mrr low`` and ``mrr high``."""
        plain = self.to_dict()
        spread = {
            f"{name} {end}": None if between is None else between[i]
            for name, between in plain.pop("intervals", {}).items()
            for i, end in enumerate(("low", "high"))
        }
        return plain | spread


@dataclass(frozen=True, repr=False)
class Report(Tabular):
    """The metrics of one split under one protocol.

    ``by_direction`` has ``tail`` and ``head`` (the predicted side); ``by_seen`` has ``seen`` and ``unseen`` (triples
    without and with an entity that is not in train); ``by_relation`` has the id of every relation of the split, both
    directions together. ``ranks`` are the ranks behind all metrics. Under protocol ``sampled`` all metrics have 95 %
    intervals: see :mod:`murp.evaluation.intervals`.
    """

    split: Split
    overall: Metrics
    by_direction: dict[str, Metrics]
    by_seen: dict[str, Metrics]
    by_relation: dict[str, Metrics]
    ranks: Ranks = field(compare=False)

    @classmethod
    def of(cls, ranks: Ranks, split: Split, relation_ids: dict[int, str], unseen: NDArray[np.bool_]) -> Report:
        """``relation_ids``: of the relations in the triples (n, 3); ``unseen`` (n): has an unseen entity."""
        both = np.stack([ranks.tail, ranks.head], axis=1)

        def metrics(part: NDArray[np.float64]) -> Metrics:
            return Metrics.of(part, ranks.protocol_in_words, sampled=ranks.sample is not None)

        relations = ranks.triples[:, 1]
        order = np.argsort(relations, kind="stable")
        present, starts = np.unique(relations[order], return_index=True)
        groups = np.split(both[order], starts[1:])
        return cls(
            split,
            overall=metrics(both),
            by_direction={"tail": metrics(ranks.tail[:, None]), "head": metrics(ranks.head[:, None])},
            by_seen={"seen": metrics(both[~unseen]), "unseen": metrics(both[unseen])},
            by_relation={
                relation_ids[int(relation)]: metrics(group) for relation, group in zip(present, groups, strict=True)
            },
            ranks=ranks,
        )

    @property
    def protocol(self) -> Protocol:
        return self.ranks.protocol

    @property
    def queries(self) -> int:
        return self.overall.queries

    @property
    def mrr(self) -> float:
        return _some(self.overall.mrr)

    @property
    def mr(self) -> float:
        return _some(self.overall.mr)

    @property
    def hits(self) -> dict[int, float]:
        return {k: _some(share) for k, share in self.overall.hits.items()}

    @property
    def intervals(self) -> dict[str, Interval | None]:
        return self.overall.intervals

    def to_dict(self, by_relation: bool = False) -> dict[str, Any]:
        """Ready for JSON: protocol, split, the overall metrics, then the groups; by relation where asked."""
        groups = {"by_direction": self.by_direction, "by_seen": self.by_seen}
        if by_relation:
            groups["by_relation"] = self.by_relation
        sample = {} if self.ranks.sample is None else dataclasses.asdict(self.ranks.sample)
        return {
            "protocol": self.protocol,
            **sample,
            "split": self.split,
            **self.overall.to_dict(),
            **{name: {key: metrics.to_dict() for key, metrics in group.items()} for name, group in groups.items()},
        }

    def columns(self) -> dict[str, list[Any]]:
        """A row for all queries, then one for each part of a group: which, split, protocol, and the metrics."""
        groups = {"direction": self.by_direction, "seen in train": self.by_seen, "relation": self.by_relation}
        parts = [("all", "all", self.overall)]
        parts += [(group, name, metrics) for group, of in groups.items() for name, metrics in of.items()]
        figures = [metrics.columns() for _, _, metrics in parts]
        return {
            "group": [group for group, _, _ in parts],
            "name": [name for _, name, _ in parts],
            "split": [self.split] * len(parts),
            "protocol": [self.overall.protocol] * len(parts),
            **{name: [one[name] for one in figures] for name in figures[0]},
        }

    def __repr__(self) -> str:
        hits = ", ".join(f"hits@{k}={share:.4f}{self._spread(f'hits@{k}')}" for k, share in self.hits.items())
        return (
            f"Report(protocol={self.overall.protocol!r}, split={self.split!r}, mrr={self.mrr:.4f}"
            f"{self._spread('mrr')}, mr={self.mr:.1f}, {hits}, queries={self.queries})"
        )

    def _spread(self, name: str) -> str:
        between = self.intervals.get(name)
        return "" if between is None else f" ({between[0]:.4f} to {between[1]:.4f})"


def _some(mean: float | None) -> float:
    assert mean is not None, "a report has at least one query"
    return mean
