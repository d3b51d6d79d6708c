"""Where the paper's experiments run: every run is trained once, evaluated, and stored as a JSON file of its own.

OUT/runs/NAME.json     a run: settings, seed, metrics of valid and test under both protocols, time, hardware, code
OUT/ITEM.json          an item: which runs it rests on, and what else its table or picture shows
OUT/work/              run folders; with them an interrupted run continues where it stopped
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from murp.analysis.hierarchy_split import hierarchical_relations, hierarchy_split
from murp.commands import command
from murp.config import Config
from murp.errors import ConfigError, DivergedError, MurpError, RunError
from murp.evaluation import Report
from murp.files import parse_json, write_text
from murp.graph import KnowledgeGraph
from murp.paper.planned_run import PlannedRun, differences
from murp.provenance import identity
from murp.runs import Run, folder
from murp.runs.run import resolve_device
from murp.runs.stamp import stamp
from murp.training.grid import train_all
from murp.training.progress import Silent
from murp.training.start import configure

HERE = Path(__file__).parent
# Graphs with more relations than this are not stored relation by relation.
FEW_RELATIONS = 60
ANEW = "Train it anew with --again, or choose another --out."


class Experiments:
    """Trains what is planned, stores the results, and returns what is stored already."""

    def __init__(
        self,
        out: Path,
        *,
        device: str = "auto",
        seeds: int = 3,
        quick: bool = False,
        again: bool = False,
        progress: Silent | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        if seeds < 1:
            raise ConfigError(f"seeds must be at least 1, not {seeds}.")
        self.out, self.device, self.quick, self.again = out, device, quick, again
        self.seeds = 1 if quick else seeds
        self.progress, self.say = progress or Silent(), say
        self.settings = read_settings(quick)
        self.graphs: dict[str, KnowledgeGraph] = {}
        identity()  # of the code as it is now, not as it may be edited before the first result

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

    def config(self, planned: PlannedRun) -> Config:
        """The complete settings of a run."""
        return Config.from_mapping({**self.training, **planned.settings(), "data": planned.data}, "settings.toml")

    def results(self, planned: Iterable[PlannedRun]) -> list[dict[str, Any]]:
        """The stored result of each run, in order; what is missing is trained first, one shape side by side."""
        order = list(planned)
        missing = [run for run in dict.fromkeys(order) if not self.is_stored(run)]
        for data in dict.fromkeys(run.data for run in missing):
            for run, result, together in self._train([run for run in missing if run.data == data]):
                self._store_run(run, result, together)
        return [stored_run(self.out, run.name) for run in order]

    def seeded(self, planned: PlannedRun) -> list[PlannedRun]:
        """The run once for each seed that is asked for."""
        return [dataclasses.replace(planned, seed=seed) for seed in range(self.seeds)]

    def train_seeds(self, planned: PlannedRun) -> list[str]:
        """The run with every seed, trained if it is not stored; the names of these runs, as an item keeps them."""
        runs = self.seeded(planned)
        self.results(runs)
        return [run.name for run in runs]

    def open(self, *planned: PlannedRun) -> list[Run]:
        """The runs themselves, for what is not in their records, but for those that diverged.

        Those whose folders are gone are trained again, for their weights alone: the records stay.
        """
        whole = [run for run, record in zip(planned, self.results(planned), strict=True) if "failed" not in record]
        for run in whole:
            if not (self.work(run.name) / folder.CONFIG).exists():
                self.say(f"{run.name}: stored, but its folder is gone; training it again for its weights")
        found = {run: result for run, result, _ in self._train(whole)} if whole else {}
        opened = [run for run in map(found.get, whole) if isinstance(run, Run)]
        if not opened:
            raise RunError(
                f"{self._file(planned[0])}: the run diverged, and has no weights to look at. Choose another learning "
                f"rate in {HERE / 'settings.toml'}."
            )
        return opened

    def begun(self, path: Path, config: Config, ignoring: tuple[str, ...] = ()) -> bool:
        """Whether the folder holds this run, finished or not; with other settings it is refused or, with ``again``,
        removed."""
        if not (path / folder.CONFIG).exists():
            return False
        other = differences(folder.read_config(path).to_dict(), config, ignoring)
        if other and self.again:
            shutil.rmtree(path)
        elif other:
            raise ConfigError(f"{path} holds a run with {', '.join(other)}. {ANEW}")
        return not other

    def work(self, name: str) -> Path:
        """The folder of a run in work."""
        return self.out / "work" / name

    def store(self, item: str, content: dict[str, Any]) -> None:
        """Write an item's JSON file, with the code and the machine that made it."""
        self._write(self.out / f"{item}.json", {"item": item, "quick": self.quick, **self._stamp(), **content})
        self.say(f"{item}: stored in {self.out / item}.json")

    def _stamp(self) -> dict[str, Any]:
        there = self.device == "cpu" or torch.cuda.is_available()  # what needs no training needs no device
        return stamp(resolve_device(self.device if there else "cpu"))

    def _write(self, path: Path, content: dict[str, Any]) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps(content) + "\n")
        except OSError as error:
            raise RunError(f"could not write {path}: {error.strerror}. Choose another --out.") from error

    def _file(self, planned: PlannedRun) -> Path:
        return self.out / "runs" / f"{planned.name}.json"

    def is_stored(self, planned: PlannedRun) -> bool:
        """Whether the run's record is there; one of a run with other settings is refused or, with ``again``, not."""
        file = self._file(planned)
        if not file.exists():
            return False
        record = read(file)
        if not isinstance(record.get("settings"), dict) or not ("failed" in record or "metrics" in record):
            raise RunError(f"{file} does not hold a run. Remove it and run its item again.")
        other = differences(record["settings"], self.config(planned))
        if other and not self.again:
            raise ConfigError(f"{file} is of a run with {', '.join(other)}. {ANEW}")
        return not other

    def _train(self, missing: Sequence[PlannedRun]) -> Iterator[tuple[PlannedRun, Run | DivergedError, int | None]]:
        """Each run, or how it diverged, and how many were trained with it; None if its folder was there already."""
        graph = self.graph(missing[0].data)
        # A shape at a time, so that what is done is stored before the next begins.
        for shape in dict.fromkeys(run.shape for run in missing):
            group = {self.work(run.name): run for run in missing if run.shape == shape}
            begun = [path for path, run in group.items() if self.begun(path, self.config(run))]
            for path in begun:
                if _epochs_done(path) < self.config(group[path]).epochs:
                    self.say(f"continuing {path.name}")
            if fresh := len(group) - len(begun):
                self.say(f"training {shape}: {fresh} {'run' if fresh == 1 else 'runs'}")
            configs = [(path, configure(graph, {**self.training, **run.settings()})[1]) for path, run in group.items()]
            for path, result in train_all(configs, graph, self.progress).items():
                if isinstance(result, MurpError) and not isinstance(result, DivergedError):
                    raise result  # a full disk is no result of the paper's
                yield group[path], result, None if path in begun else fresh

    def _store_run(self, planned: PlannedRun, result: Run | DivergedError, together: int | None) -> None:
        config = folder.read_config(self.work(planned.name))
        settings = {**config.to_dict(), "data": planned.data, "data_dir": ""}
        record: dict[str, Any] = {"name": planned.name, "settings": settings, **self._stamp()}
        if isinstance(result, Run):
            lines = result.metrics()
            record |= {
                "environment": folder.read_environment(result.path),
                "selected_epoch": result.state["epoch"],
                "selected_by": "MRR on valid, protocol standard",
                # Validation included, over all interruptions; side by side the steps' time is everyone's.
                "training_seconds": lines[-1]["seconds"],
                "trained_side_by_side": together,
                "metrics": {
                    split: {protocol: self._metrics(result, split, protocol) for protocol in ("standard", "paper")}
                    for split in ("valid", "test")
                },
                "valid_curve": [[line["epoch"], line["valid"]["mrr"]] for line in lines if "valid" in line],
            }
        else:
            record |= {"failed": result.reason, "failed_epoch": result.epoch}
        self._write(self._file(planned), record)

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
    """The paper's own values, ``published.toml``."""
    return tomllib.loads((HERE / "published.toml").read_text(encoding="utf-8"))


def stored(out: Path, item: str) -> dict[str, Any] | None:
    """An item's JSON file; None if it has not been run."""
    path = out / f"{item}.json"
    if not path.exists():
        return None
    content = read(path)
    if (
        content.get("item") != item
        or not isinstance(content.get("quick"), bool)
        or not isinstance(content.get("date"), str)
    ):
        raise RunError(
            f"{path} is not as `{command('paper', 'run', item)}` stores it. Remove it and run the item again."
        )
    return content


def stored_run(out: Path, name: str) -> dict[str, Any]:
    """A run's JSON file."""
    if not isinstance(name, str) or Path(name).name != name:
        raise RunError(f"{out}: a stored item rests on a run called {name!r}, which is no file's name. Run it again.")
    return read(out / "runs" / f"{name}.json")


def read(path: Path) -> dict[str, Any]:
    """A JSON file of results."""
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}). Remove it and run its item again.") from error
    if not isinstance(content, dict):
        raise RunError(f"{path} does not hold a result. Remove it and run its item again.")
    return content


def valid_mrr(record: dict[str, Any]) -> float:
    """What settings are chosen by; a run that diverged is never chosen."""
    return -1.0 if "failed" in record else float(record["metrics"]["valid"]["standard"]["mrr"])


def rounded(value: Any) -> Any:
    """The same with every float at six digits: more than any table prints, and a third of the file."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return value


def _epochs_done(path: Path) -> int:
    return int(max((line["epoch"] for line in folder.read_metrics(path)), default=0))
