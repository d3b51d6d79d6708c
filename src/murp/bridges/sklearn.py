"""A scikit-learn estimator that is fitted to triples, and returns vectors and predictions.

    embedder = Embedder(dim=20, epochs=50).fit(triples)
    embedder.transform(["a", "b"])                        # vectors (2, 20)
    embedder.predict([("a", "knows", "c")])               # true or false
    embedder.predict_proba([("a", "knows", "c")])         # (1, 2): false, true

In a pipeline the rows are entities, and the graph is a parameter:

    make_pipeline(Embedder(graph, dim=20), LogisticRegression()).fit(names, labels)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from murp.api.run import Run
from murp.api.training import train
from murp.errors import ConfigError, DataError, MurpError
from murp.exchange.coordinates import Coordinates, has_all_coordinates
from murp.graph import KnowledgeGraph
from murp.graph.names.lookup import Numbers
from murp.graph.splitting import split
from murp.prediction.classification import Thresholds, choose_thresholds, judge
from murp.prediction.probability import sigmoid
from murp.prediction.triples import text_triples
from murp.training.progress import Silent

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.exceptions import NotFittedError
except ImportError:
    raise MurpError("murp.bridges.sklearn needs scikit-learn: pip install 'murp[sklearn]'.") from None

NAME = "triples"  # of the graph that is made of them


class Embedder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A model of triples as a scikit-learn estimator.

    ``graph``: the triples to learn from; None: they are given to :meth:`fit`. ``model``, ``dim``, ``epochs`` and
    ``seed`` are settings of :func:`murp.train`, ``settings`` any others. ``valid`` is the share of facts that is held
    out to choose thresholds for :meth:`predict`; 0: none, and the threshold is φ = 0. ``coordinates`` are those of
    :meth:`transform`: by default a hyperbolic model's points are in the tangent space at the origin, which suits
    Euclidean tools. ``out`` is the run folder, by default one under ``runs/``; a fit with the same settings on the same
    facts opens the run that is there.

    After :meth:`fit`: ``run_`` is the :class:`murp.Run`, ``thresholds_`` those of its relations, ``classes_`` false and
    true.
    """

    def __init__(
        self,
        graph: Any = None,
        model: str = "murp",
        dim: int = 40,
        epochs: int = 100,
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
        valid: float = 0.05,
        coordinates: Coordinates | None = None,
        out: str | os.PathLike[str] | None = None,
    ) -> None:
        self.graph = graph
        self.model = model
        self.dim = dim
        self.epochs = epochs
        self.seed = seed
        self.settings = settings
        self.valid = valid
        self.coordinates = coordinates
        self.out = out

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on triples: a list of (head, relation, tail), an array, a data frame, or a graph.

        If ``graph`` was given, train on it: then ``X`` are the entities of a pipeline. ``y`` is for its next steps.
        """
        triples = X if self.graph is None else self.graph
        graph = triples if isinstance(triples, KnowledgeGraph) else self._made(triples)
        given: dict[str, Any] = {"model": self.model, "dim": self.dim, "epochs": self.epochs, "seed": self.seed}
        given |= self.settings or {}
        if not len(graph.valid):
            given.setdefault("validate_every", 0)
        self.run_: Run = train(graph, out=self.out, progress=Silent(), **given)
        self.thresholds_ = Thresholds(0.0, {})
        if len(graph.valid):
            self.thresholds_ = choose_thresholds(judge(self.run_.model, graph, "valid", self.seed))
        self.classes_ = np.array([False, True])
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Vectors (n, d) of entities, by id or name: a list, or an array or data frame with one column."""
        run = self._fitted()
        coordinates = self.coordinates
        if coordinates is None and has_all_coordinates(run.model):
            coordinates = "tangent"
        names = np.asarray(X, dtype=object)
        if names.ndim == 2 and names.shape[1] == 1:
            names = names[:, 0]
        if names.ndim != 1:
            raise DataError(f"transform takes one name a row, not an array of shape {names.shape}.")
        texts = [str(name) for name in names.tolist()]
        rows = Numbers(run.graph.entities).find(texts, lambda row: f"row {row + 1}")
        vectors: NDArray[Any] = run.embeddings(coordinates=coordinates).vectors.reshape(run.graph.num_entities, -1)
        return vectors[rows]

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """φ of each triple, (n)."""
        return self._fitted().score(X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """σ(φ) of each triple: the probabilities of false and of true, (n, 2)."""
        true = sigmoid(self.decision_function(X))
        return np.stack([1 - true, true], axis=1)

    def predict(self, X: Any) -> NDArray[np.bool_]:
        """Which triples count as true, (n): φ reaches the threshold of its relation."""
        run = self._fitted()
        relations = [relation for _, relation, _ in text_triples(X)]
        numbers = Numbers(run.graph.relations).find(relations, lambda row: f"triple {row + 1}")
        return self.thresholds_.accept(run.score(X), numbers)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The columns of :meth:`transform`: murp0, murp1, …"""
        width = int(np.prod(self._fitted().model.parameters["entity"].shape[1:]))
        return np.array([f"murp{i}" for i in range(width)], dtype=object)

    def _made(self, triples: Any) -> KnowledgeGraph:
        if not 0 <= self.valid < 1:
            raise ConfigError(f"valid must be at least 0 and below 1, not {self.valid!r}.")
        rows = text_triples(triples)
        if not rows:
            raise DataError("there are no triples to fit to.")
        text = pa.large_string()
        columns = dict(zip(("head", "relation", "tail"), zip(*rows, strict=True), strict=True))
        table = pa.table({name: pa.array(values, text) for name, values in columns.items()})
        whole = KnowledgeGraph.from_tables(NAME, table, table.slice(0, 0), table.slice(0, 0))
        if not self.valid:
            return whole
        # The splitter holds out one fact for test too at least: it goes back into train.
        kept, held, spare = split(whole.train, seed=self.seed, valid=self.valid, test=0.0)
        kept = np.concatenate([kept, spare])
        return KnowledgeGraph(NAME, whole.entities, whole.relations, train=kept, valid=held, test=held[:0])

    def _fitted(self) -> Run:
        if not hasattr(self, "run_"):
            raise NotFittedError("this Embedder is not fitted yet: call fit with triples first.")
        return self.run_
