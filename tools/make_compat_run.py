"""Makes the small run that tests/compat keeps for a format of run folders.

    python tools/make_compat_run.py tests/compat/format-1

Once for each format, with the version of murp that introduces it, and never again: later versions must read what it
wrote. Beside the run lies ``expected.json``: the figures that evaluating it gave, and the entities after two more
epochs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import murp
from murp.files import write_text
from murp.graph import KnowledgeGraph
from murp.runs import checkpoint, folder

SETTINGS = {"dim": 2, "epochs": 4, "lr": 1.0, "batch_size": 8, "negatives": 3, "validate_every": 2}
MORE_EPOCHS = 6


def facts() -> list[str]:
    """A family of twelve in three generations, told as lines of a file."""
    children = [(child, (child - 1) // 3) for child in range(1, 13)]
    lines = [f"person {child}\tchild of\tperson {parent}\n" for child, parent in children]
    return lines + [
        f"person {a}\tsibling of\tperson {b}\n" for a, p in children for b, q in children if p == q and a < b
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, evaluate, go on in a copy, and write down the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder to make, with run/ and expected.json")
    out = parser.parse_args(arguments).out
    with tempfile.TemporaryDirectory() as work:
        source = Path(work) / "family.tsv"
        source.write_text("".join(facts()), encoding="utf-8")
        graph = dataclasses.replace(KnowledgeGraph.load(source), source="family.tsv")
        run = murp.train(graph, out=out / "run", device="cpu", engine="torch", dtype="float64", **SETTINGS)
        copy = Path(work) / "copy"
        shutil.copytree(run.path, copy)
        murp.resume(copy, epochs=MORE_EPOCHS)
        tables, _ = checkpoint.load(copy / folder.LAST)
        expected = {
            "murp": murp.__version__,
            "protocol": "standard",
            "test_mrr": run.evaluate("test").mrr,
            "train_mrr": run.evaluate("train").mrr,
            "epochs_after_resuming": MORE_EPOCHS,
            "entity_after_resuming": tables["entity"].tolist(),
        }
    write_text(out / "expected.json", json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
