"""Training, evaluation and prediction in a process that some start method makes; see ``test_other_processes.py``.

``python other_process.py METHOD …`` does all three in this process, then for each method in a child and here again, and
prints all as JSON.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

import murp
from examples import PATIENCE
from murp import threads
from trees import tree

ENGINES = ("numba", "torch")
SETTINGS: dict[str, Any] = {
    "dim": 5, "epochs": 3, "lr": 2.0, "batch_size": 16, "negatives": 5, "dtype": "float64", "device": "cpu",
    "validate_every": 1,
}  # fmt: skip


def figures(engine: str) -> dict[str, Any]:
    """What a training, an evaluation and a prediction give, and a digest of every bit of the tables."""
    with tempfile.TemporaryDirectory() as folder:
        run = murp.train(tree(), out=Path(folder) / "run", engine=engine, **SETTINGS)
        tables = run.model.parameters
        found = run.predict(head="n40", relation="parent", k=5)
        return {
            "epochs": [epoch["loss"] for epoch in run.metrics()],
            "tables": {name: values.flatten().tolist() for name, values in tables.items()},
            "digest": hashlib.sha256(b"".join(tables[name].numpy().tobytes() for name in sorted(tables))).hexdigest(),
            "mrr": run.evaluate("test").mrr,
            "mr": run.evaluate("test", "paper").mr,
            "predicted": [prediction.id for prediction in found],
            "scores": [prediction.score for prediction in found],
        }


def all_figures() -> dict[str, Any]:
    """By both engines."""
    return {engine: figures(engine) for engine in ENGINES}


def share_all() -> None:
    """Use two threads for all that can be shared, however small: a child must not miss those of its parent."""
    threads.use(2)
    threads._WORTH_A_THREAD = 1


def answer(connection: Any) -> None:
    """What a child does."""
    share_all()
    for engine in ENGINES:
        try:
            connection.send((engine, figures(engine)))
        except Exception as error:
            connection.send((engine, {"error": f"{type(error).__name__}: {error}"}))


def in_child(method: str) -> dict[str, Any]:
    """The same in a child; one that does not answer is killed and told of."""
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=answer, args=(theirs,))
    child.start()
    theirs.close()
    found: dict[str, Any] = {}
    try:
        while len(found) < len(ENGINES):
            if not ours.poll(PATIENCE):
                found["error"] = f"the child did not answer in {PATIENCE} s"
                break
            engine, what = ours.recv()
            found[engine] = what
    except EOFError:
        child.join(PATIENCE)
        found["error"] = f"the child ended with status {child.exitcode}"
    finally:
        child.kill()
        child.join()
    return found


def main(methods: list[str]) -> None:
    """See this module."""
    share_all()
    torch.rand(2**20).exp_()  # now PyTorch has threads, which a forked child does not
    here = all_figures()
    told = {method: {"parent": here, "child": in_child(method), "parent again": all_figures()} for method in methods}
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1:])
