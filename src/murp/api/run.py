"""``murp.Run``: a run folder with everything the command line can do with it.

:class:`murp.runs.Run` opens the folder, evaluates and answers. This class adds methods from higher layers (analysis,
pictures, exports, the explorer), which are imported when they are used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from murp.evaluation import Protocol
from murp.export_formats import Format
from murp.graph import Split
from murp.graph.adding_facts import New
from murp.picture_kinds import Colour, Kind, Projection
from murp.runs import Run as Folder
from murp.runs.info import Info, info

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from murp.analysis.embedding import EmbeddingReport
    from murp.analysis.higher import Comparison
    from murp.exchange.coordinates import Coordinates
    from murp.exchange.embeddings import Embeddings
    from murp.explorer.notebook import Explorer
    from murp.hierarchy import Reconstruction


class Run(Folder):
    """A trained run: evaluate, predict, draw, export."""

    @classmethod
    def of(cls, folder: Folder) -> Run:
        """The same run with all its methods."""
        parts = folder.path, folder.config, folder.graph, folder.given_model, folder.state
        return cls(*parts, folder.checkpoint, folder.search)

    def extend(
        self,
        facts: Any,
        out: str | os.PathLike[str] | None = None,
        *,
        new: New = "all",
        epochs: int | None = None,
        seed: int = 0,
        advance: Callable[[int], None] = lambda done: None,
    ) -> Run:
        """A new run folder with the new entities and relations of ``facts``; all other rows stay unchanged.

        ``facts``: a file, a list of (head, relation, tail), a data frame or an Arrow table. ``out`` is the folder to
        make, by default the name of this one with ``-extended``. ``new``: what may be new, "all", only "entities" or
        only "relations"; any other unknown name is an error. ``epochs``: passes over the new facts, by default as many
        as the optimizer needs. ``seed`` draws the order and the negatives. ``advance`` is called after every pass.
        """
        from murp.training.extending import extend

        return Run.of(extend(self, facts, out, new=new, epochs=epochs, seed=seed, advance=advance))

    def info(self) -> Info:
        """Settings, graph, progress and environment of the run folder."""
        return info(self.path)

    def embeddings(self, table: str = "entity", *, coordinates: Coordinates | None = None) -> Embeddings:
        """The vectors of every entity with their ids: an array, a data frame, a tensor or a ``torch.nn.Embedding``.

        ``table``: another of the model's tables, such as "translation". ``coordinates`` of a hyperbolic model's points:
        "poincare" (as in the model), "lorentz", or "tangent", which suits Euclidean tools.
        """
        from murp.exchange.embeddings import embeddings

        return embeddings(self, table, coordinates)

    def embedding(self, name: str, table: str = "entity", *, coordinates: Coordinates | None = None) -> NDArray[Any]:
        """The vector of one entity, by id or name; see :meth:`embeddings`."""
        return self.embeddings(table, coordinates=coordinates)[name]

    def analyze(self, *, split: Split = "test", protocol: Protocol = "standard") -> EmbeddingReport:
        """How the run represents the hierarchies of its graph: depth against norm, and how well each relation is
        predicted."""
        from murp.analysis.embedding import embedding_report

        return embedding_report(self, split=split, protocol=protocol)

    def higher(self, first: str, second: str, relation: str) -> Comparison:
        """Which of two entities is higher under a relation: by the graph, by the scores and by the norms."""
        from murp.analysis.higher import compare

        return compare(self, first, second, relation)

    def reconstruct(self) -> Reconstruction:
        """How well the hierarchy of a run of :func:`murp.embed` can be reconstructed from its points: mean rank and
        MAP."""
        from murp.hierarchy import reconstruction

        return reconstruction(self)

    def plot(
        self,
        kind: Kind = "disk",
        *,
        others: Sequence[Folder] = (),
        head: str | None = None,
        relation: str | None = None,
        centre: str | None = None,
        edges: str | None = None,
        colour: Colour | None = None,
        projection: Projection | None = None,
        split: Split | None = None,
        protocol: Protocol | None = None,
        out: str | os.PathLike[str] | None = None,
        force: bool = False,
    ) -> Figure:
        """A picture as a matplotlib figure, which a notebook shows.

        ``kind``: one of `murp plot --help`; "disk" shows all entities, or with ``head`` and ``relation`` a question's
        answers. ``others``: more runs beside this one. ``centre``: the
        entity in the centre. ``edges``: a relation whose facts are drawn. ``colour`` of the points: "norm", "depth" or
        "relation". ``out``: also write this file (.png, .svg, .pdf); ``force`` overwrites it.
        """
        from murp.plots.pictures import picture
        from murp.plots.style import picture_path, save
        from murp.prediction.results import check_place

        if out is not None:
            check_place(picture_path(Path(out)), force=force)
        options = {
            "head": head, "relation": relation, "centre": centre, "edges": edges, "colour": colour,
            "projection": projection, "split": split, "protocol": protocol,
        }  # fmt: skip
        drawn = picture([self, *others], kind, options)
        if out is not None:
            save(drawn, Path(out))
        return drawn

    def export(
        self, out: str | os.PathLike[str], to: Format | None = None, *, coordinates: Coordinates | None = None
    ) -> Path:
        """Write vectors with names, geometry, relations and biases. Returns the new file or folder.

        ``to``: one of `murp export --help`; None: by the ending of ``out``. ``coordinates`` as in :meth:`embeddings`.
        """
        from murp.exchange.export import export, format_of

        path = Path(out)
        export(self, format_of(path) if to is None else to, path, coordinates)
        return path

    def explore(
        self,
        *others: Folder,
        columns: str | os.PathLike[str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        height: int = 640,
    ) -> Explorer:
        """The explorer, served from this process; a notebook shows it in a frame of ``height`` pixels.

        ``others``: runs on the same graph, side by side. ``columns``: a tab-separated file with a first row of names,
        then id and values to colour points by. ``port`` 0 takes any free port. It ends with ``close()``, or with the
        process. :meth:`page` writes a page that needs no server.
        """
        from murp.explorer.notebook import Explorer

        return Explorer([self, *others], columns=columns, host=host, port=port, height=height)

    def film(self, out: str | os.PathLike[str]) -> Path:
        """A film of the training as a .gif, .mp4 or .html file, if it was recorded (``murp train --explore``).

        In Python, record a training with ``progress=murp.explorer.watched.Watched(…)``.
        """
        from murp.explorer.animation import write_animation

        write_animation(self.path, Path(out))
        return Path(out)

    def page(self, out: str | os.PathLike[str]) -> Path:
        """The explorer's disk and search as one self-contained .html file that you can send."""
        from murp.explorer.export import write_page

        write_page(self, Path(out))
        return Path(out)
