"""Every reader of files and folders, each with good input to damage: what ``fuzz.py`` tries."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
from damage import mutated, mutated_json
from fuzz_formats import (
    Damage,
    damaged_coded,
    damaged_config,
    damaged_export_parquet,
    damaged_member,
    damaged_npz,
    damaged_parquet,
    damaged_safetensors,
    damaged_text,
    facts_table,
    gz,
    packed,
    xz,
    zstd,
)
from fuzz_oracle import Attempt, Make, made_run, small_graph, told

from murp.config import Config
from murp.exchange import export, import_run
from murp.files import parse_json
from murp.graph import sources, storage
from murp.graph.reading import files
from murp.paper import report
from murp.prediction.calibration import Calibration
from murp.prediction.queries import read_queries
from murp.runs import checkpoint, folder, load, tensor_file
from murp.runs.settings import checked
from murp.training.job import Job
from murp.training.state import State


def one_file(name: str, damage: Damage, read: Callable[[Path], object]) -> Make:
    """A reader of one file."""

    def make(scratch: Path) -> Attempt:
        path = scratch / name

        def attempt(random: Random) -> bool:
            path.write_bytes(damage(random))
            return told(lambda: read(path), str(path))

        return attempt

    return make


def read_query_file(path: Path) -> None:
    for _ in read_queries(path, small_graph()):
        pass


def make_checkpoint(scratch: Path) -> Attempt:
    """A checkpoint read to go on training: damaged, or whole with a state that never was."""
    run = load(made_run(scratch / "run"), device="cpu")
    file, path = run.path / folder.LAST, scratch / "checkpoint.safetensors"
    damage, (tables, state) = damaged_safetensors(file.read_bytes(), "state"), checkpoint.load(file)

    def read() -> None:
        found = checked(checkpoint.load(path)[1], run.config, path, run.path / folder.CONFIG)
        Job(scratch, run.config, run.graph, run.model, State.from_dict(found, path))

    def attempt(random: Random) -> bool:
        path.write_bytes(damage(random))
        if random.random() < 0.5:
            with contextlib.suppress(ValueError):
                other = parse_json(mutated_json(state, random))
                tensor_file.write(path, tables, other if isinstance(other, dict) else {"epoch": other})
        return told(read, "checkpoint")

    return attempt


def make_import(form: str) -> Make:
    """Exports read back into a run folder."""

    def make(scratch: Path) -> Attempt:
        run = load(made_run(scratch / "run"), device="cpu")
        graph = scratch / "graph"
        run.graph.save(graph)
        out = scratch / (f"export.{form}" if form in ("npz", "safetensors") else "export")
        export(run, form, out)  # type: ignore[arg-type]
        wound = {"npz": damaged_npz, "safetensors": lambda data: damaged_safetensors(data, "murp")}
        damages = {file: wound[form](file.read_bytes()) for file in [out] if form in wound}
        if form == "hub-folder":
            damages = {file: damaged_member(file) for file in sorted(out.rglob("*")) if file.is_file()}
        elif form == "parquet":
            damages = {file: damaged_export_parquet(file) for file in sorted(out.iterdir())}
        whole = {file: file.read_bytes() for file in damages}
        target = scratch / "imported"

        def attempt(random: Random) -> bool:
            file = random.choice(list(damages))
            file.write_bytes(damages[file](random))
            try:
                return told(lambda: import_run(out, target, None if form == "hub-folder" else str(graph)), str(out))
            finally:
                file.write_bytes(whole[file])
                shutil.rmtree(target, ignore_errors=True)

        return attempt

    return make


def make_run_folder(scratch: Path) -> Attempt:
    run = made_run(scratch / "run")
    damages = {file: damaged_member(file) for file in sorted(run.rglob("*")) if file.is_file()}
    coded = {split: damaged_coded(run / "graph" / f"{split}.parquet") for split in ("train", "entities", "relations")}
    whole = {file: file.read_bytes() for file in damages}
    manifest = run / "graph" / storage.MANIFEST

    def read() -> None:
        opened = load(run, device="cpu")
        opened.metrics()
        folder.read_environment(run)
        if opened.calibration is not None:
            opened.calibration.words()
        opened.predict(head=opened.graph.entities.id(0), relation=opened.graph.relations.id(0))
        opened.evaluate("test")

    def attempt(random: Random) -> bool:
        file = random.choice(list(damages))
        if random.random() < 0.2:  # a graph that is damaged and still agrees with its manifest
            split = random.choice(list(coded))
            file = run / "graph" / f"{split}.parquet"
            rows = coded[split](file, random)
            described = json.loads(whole[manifest])
            described["sha256"][split], described["rows"][split] = storage.sha256(file), rows
            manifest.write_text(json.dumps(described))
        else:
            file.write_bytes(damages[file](random))
        try:
            return told(read, str(run))
        finally:
            file.write_bytes(whole[file])
            manifest.write_bytes(whole[manifest])

    return attempt


def make_calibration(scratch: Path) -> Attempt:
    path = made_run(scratch / "run") / folder.CALIBRATION
    values = json.loads(path.read_text())

    def read() -> None:
        found = Calibration.read(path)
        found.words()
        found.probability(np.linspace(-3, 3, 5), np.arange(1, 6))

    def attempt(random: Random) -> bool:
        path.write_bytes(mutated_json(values, random))
        return told(read, str(path))

    return attempt


def make_results(scratch: Path) -> Attempt:
    """Stored results of the paper, read for the report."""
    figures = dict.fromkeys(("mrr", "mean_rank", "hits@1", "hits@3", "hits@10"), 0.5)
    seen = {"seen": {**figures, "queries": 4}, "unseen": {**figures, "queries": 2}}
    metrics = {"standard": {**figures, "by_seen": seen}, "paper": {**figures, "by_seen": seen}}
    run = {
        "name": "a", "settings": {"epochs": 3, "seed": 0, "batch_size": 4, "negatives": 5, "dtype": "float32",
        "validate_every": 1}, "murp": "0.1.0", "source": "x", "date": "2026", "environment": {"device": "cpu"},
        "metrics": {"valid": metrics, "test": metrics},
    }  # fmt: skip
    cells = [{"data": "WN18RR", "model": model, "dim": 40, "lr": 50, "runs": ["a"]} for model in ("murp", "mure")]
    item = {
        "item": "table1",
        "quick": False,
        "date": "2026",
        "settings": {"data": ["WN18RR"], "grid": [50], "dims": [40]},
        "grid": cells,
        "cells": cells,
    }
    files = {scratch / "table1.json": item, scratch / "runs" / "a.json": run}
    (scratch / "runs").mkdir()

    def attempt(random: Random) -> bool:
        damaged = random.choice(list(files))
        for file, content in files.items():
            file.write_bytes(mutated_json(content, random) if file == damaged else json.dumps(content).encode())
        return told(lambda: report.write(scratch, scratch / "report"), str(scratch))

    return attempt


_TSV, _CSV = damaged_text("\t"), damaged_text(",")
_JSONL = b'{"head": "e1", "relation": "r1"}\n{"relation": "r2", "tail": "e4"}\n{"head": "\\u00653", "relation": "r0"}\n'
_NAMES = b"e1\tname one\ta gloss\ne2\t\t\nr0\t\xc3\xbc\tx\n"

FILES: dict[str, tuple[int, Make]] = {
    "triples .tsv": (20_000, one_file("facts.tsv", _TSV, sources.read)),
    "triples .txt": (4_000, one_file("facts.txt", _TSV, sources.read)),
    "triples .csv": (18_000, one_file("facts.csv", _CSV, sources.read)),
    "triples .tsv.gz": (6_000, one_file("facts.tsv.gz", packed(_TSV, gz), sources.read)),
    "triples .csv.xz": (5_000, one_file("facts.csv.xz", packed(_CSV, xz), sources.read)),
    "triples .tsv.zst": (6_000, one_file("facts.tsv.zst", packed(_TSV, zstd), sources.read)),
    "triples .parquet": (6_000, one_file("facts.parquet", damaged_parquet(facts_table()), sources.read)),
    "triples .parquet.gz": (
        2_000,
        one_file("facts.parquet.gz", packed(damaged_parquet(facts_table()), gz), sources.read),
    ),
    "names": (10_000, one_file("entity_names.tsv", lambda random: mutated(_NAMES, random), files.read_names)),
    "configuration": (
        9_000,
        one_file("c.toml", damaged_config, lambda path: Config.from_mapping(Config.read(path), str(path))),
    ),
    "checkpoint": (6_000, make_checkpoint),
    "queries .tsv": (5_000, one_file("asked.tsv", damaged_text("\t", width=2), read_query_file)),
    "queries .csv.gz": (3_000, one_file("asked.csv.gz", packed(damaged_text(",", width=2), gz), read_query_file)),
    "queries .jsonl": (6_000, one_file("asked.jsonl", lambda random: mutated(_JSONL, random), read_query_file)),
    "queries .parquet": (2_000, one_file("asked.parquet", damaged_parquet(facts_table(2)), read_query_file)),
    "import npz": (1_200, make_import("npz")),
    "import safetensors": (1_200, make_import("safetensors")),
    "import parquet": (800, make_import("parquet")),
    "import hub-folder": (600, make_import("hub-folder")),
    "run folder": (2_500, make_run_folder),
    "calibration": (4_000, make_calibration),
    "paper results": (4_000, make_results),
}  # fmt: skip
"""How many inputs each reader is tried with, and how to make it."""
