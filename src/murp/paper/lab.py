"""Where the paper's experiments run: every run is trained once, evaluated, and stored as a JSON file of its own.

OUT/runs/NAME.json     a run: settings, seed, metrics of valid and test under both protocols, time, hardware, version
OUT/ITEM.json          an item: which runs it rests on, and what else its table or picture shows
OUT/work/              run folders; with them an interrupted run continues where it stopped
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import murp
from murp.analysis.hierarchy_split import hierarchical_relations, hierarchy_split
from murp.config import Config
from murp.errors import ConfigError, MurpError, RunError
from murp.evaluation import Report
from murp.files import parse_json, write_text
from murp.graph import KnowledgeGraph
from murp.runs import Run, folder, load
from murp.training.grid import train_all
from murp.training.progress import Silent
from murp.training.start import configure, resume

HERE = Path(__file__).parent
# Graphs with more relations than this are not stored relation by relation.
FEW_RELATIONS = 60


@dataclass(frozen=True)
class Wanted:
    """One run of the paper: what distinguishes it from the others. ``parts`` are (transformation, bias)."""

    data: str
    model: str
    dim: int
    lr: float
    seed: int = 0
    parts: tuple[str, str] = ("published", "both")

    @property
    def name(self) -> str:
        """``WN18RR-murp-d40-lr50-seed0``, and the parts where they are not the published ones."""
        parts = [part for part in self.parts if part not in ("published", "both")]
        return "-".join([self.data, self.model, f"d{self.dim}", f"lr{self.lr:g}", f"seed{self.seed}", *parts])

    def settings(self) -> dict[str, Any]:
        """As :class:`murp.Config` names them."""
        transformation, bias = self.parts
        chosen = {"model": self.model, "dim": self.dim, "lr": float(self.lr), "seed": self.seed}
        return {**chosen, "transformation": transformation, "bias": bias}


class Lab:
    """Trains what is wanted, stores what came, and hands out what is stored already."""

    def __init__(
        self,
        out: Path,
        *,
        device: str = "auto",
        seeds: int = 3,
        quick: bool = False,
        progress: Silent | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        if seeds < 1:
            raise ConfigError(f"seeds must be at least 1, not {seeds}.")
        self.out, self.device, self.quick = out, device, quick
        self.seeds = 1 if quick else seeds
        self.progress, self.say = progress or Silent(), say
        self.settings = read_settings(quick)
        self.graphs: dict[str, KnowledgeGraph] = {}

    @property
    def training(self) -> dict[str, Any]:
        """Settings every run shares."""
        return {**self.settings["training"], "device": self.device}

    def graph(self, name: str) -> KnowledgeGraph:
        """A dataset by name; ``wordnet-mini-h75`` and its like are made by the split builder."""
        if name not in self.graphs:
            origin, _, share = name.rpartition("-h")
            if origin == "wordnet-mini":
                whole = self.graph(origin)
                chosen = hierarchical_relations(whole)
                self.graphs[name] = hierarchy_split(whole, chosen, shares=[int(share)], valid=500, test=500)[0].graph
            else:
                self.graphs[name] = KnowledgeGraph.load(name)
        return self.graphs[name]

    def results(self, wanted: Iterable[Wanted]) -> list[dict[str, Any]]:
        """The stored result of each run, in order; what is missing is trained first, one shape side by side."""
        order = list(wanted)
        missing = [run for run in dict.fromkeys(order) if not self._file(run).exists()]
        for data in dict.fromkeys(run.data for run in missing):
            self._train([run for run in missing if run.data == data])
        return [json.loads(self._file(run).read_text(encoding="utf-8")) for run in order]

    def open(self, wanted: Wanted) -> Run:
        """The run itself, for what is not in its JSON file; trained again where its folder is gone."""
        self.results([wanted])
        if not (self.work(wanted.name) / folder.CONFIG).exists():
            self._train([wanted])
        return load(self.work(wanted.name), device=self.device, graph=self.graph(wanted.data))

    def work(self, name: str) -> Path:
        """The folder of a run in work."""
        return self.out / "work" / name

    def store(self, item: str, content: dict[str, Any]) -> None:
        """Write an item's JSON file, with the version of the code that made it."""
        stamp = {"item": item, "quick": self.quick, "murp": murp.__version__, "source": source_digest(), "date": _now()}
        self._write(self.out / f"{item}.json", {**stamp, **content})
        self.say(f"{item}: stored in {self.out / item}.json")

    def _write(self, path: Path, content: dict[str, Any]) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps(content) + "\n")
        except OSError as error:
            raise RunError(f"could not write {path}: {error.strerror}. Choose another --out.") from error

    def _file(self, wanted: Wanted) -> Path:
        return self.out / "runs" / f"{wanted.name}.json"

    def _train(self, missing: Sequence[Wanted]) -> None:
        graph = self.graph(missing[0].data)
        runs = {self.work(run.name): run for run in missing}
        configs = [(path, configure(graph, {**self.training, **run.settings()})[1]) for path, run in runs.items()]
        for path, config in configs:
            if (path / folder.CONFIG).exists() and not _finished(path, config):
                self.say(f"continuing {path.name}")
                resume(path, progress=self.progress)
        # A shape at a time, so that what is done is stored before the next begins.
        for shape in dict.fromkeys(_shape(run) for run in missing):
            group = [(path, config) for path, config in configs if _shape(runs[path]) == shape]
            self.say(f"training {len(group)} of {', '.join(str(part) for part in shape if part)}")
            began = time.perf_counter()
            for path, result in train_all(group, graph, self.progress).items():
                self._store_run(runs[path], dict(group)[path], result, len(group), time.perf_counter() - began)

    def _store_run(self, wanted: Wanted, config: Config, result: Run | MurpError, together: int, wall: float) -> None:
        settings = {**dataclasses.asdict(config), "data": wanted.data, "data_dir": ""}
        record: dict[str, Any] = {"name": wanted.name, "settings": settings}
        record |= {"murp": murp.__version__, "source": source_digest(), "date": _now()}
        if isinstance(result, Run):
            record |= {
                "environment": folder.read_environment(result.path),
                "selected_epoch": result.state["epoch"],
                "selected_by": "MRR on valid, protocol standard",
                "wall_seconds": round(wall, 2),
                "trained_side_by_side": together,
                "metrics": {
                    split: {protocol: self._metrics(result, split, protocol) for protocol in ("standard", "paper")}
                    for split in ("valid", "test")
                },
                "valid_curve": [[line["epoch"], line["valid"]["mrr"]] for line in result.metrics() if "valid" in line],
            }
        else:
            record["failed"] = str(result)
        self._write(self._file(wanted), record)

    def _metrics(self, run: Run, split: Any, protocol: Any) -> dict[str, Any]:
        report: Report = run.evaluate(split, protocol)
        figures: dict[str, Any] = rounded(report.to_dict(by_relation=run.graph.num_relations <= FEW_RELATIONS))
        return figures


def read_settings(quick: bool = False) -> dict[str, Any]:
    """``settings.toml``; for a quick run with what its ``quick`` part replaces."""
    settings = tomllib.loads((HERE / "settings.toml").read_text(encoding="utf-8"))
    replaced = settings.pop("quick")
    return {item: {**values, **replaced.get(item, {})} if quick else values for item, values in settings.items()}


def published() -> dict[str, Any]:
    """The paper's own figures, ``published.toml``."""
    return tomllib.loads((HERE / "published.toml").read_text(encoding="utf-8"))


def stored(out: Path, item: str) -> dict[str, Any] | None:
    """An item's JSON file; None where it has not been run."""
    path = out / f"{item}.json"
    return _read(path) if path.exists() else None


def stored_run(out: Path, name: str) -> dict[str, Any]:
    """A run's JSON file."""
    if not isinstance(name, str) or Path(name).name != name:
        raise RunError(f"{out}: a stored item rests on a run called {name!r}, which is no file's name. Run it again.")
    return _read(out / "runs" / f"{name}.json")


def _read(path: Path) -> dict[str, Any]:
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}). Remove it and run its item again.") from error
    if not isinstance(content, dict):
        raise RunError(f"{path} does not hold a result. Remove it and run its item again.")
    return content


@cache
def source_digest() -> str:
    """The code itself, in twelve digits: a version number stays the same while the code changes."""
    digest = hashlib.blake2b(digest_size=6)
    for path in sorted(Path(murp.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def rounded(value: Any) -> Any:
    """The same with every float at six digits: more than any table prints, and a third of the file."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return value


def _shape(wanted: Wanted) -> tuple[str, str, int, tuple[str, str]]:
    return wanted.data, wanted.model, wanted.dim, wanted.parts


def _finished(path: Path, config: Config) -> bool:
    records = folder.read_metrics(path)
    return bool(records) and records[-1]["epoch"] >= config.epochs


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
