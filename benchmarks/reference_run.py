"""One reference run of the paper's settings, stored with its evidence.

    python benchmarks/reference_run.py --data WN18RR --model murp --out results/wn18rr-murp-d40.json

Trains with the paper's settings, selects the checkpoint by MRR on valid alone, evaluates it on valid
and test under both protocols, and writes settings, seed, hardware, versions and the figures.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import murp
from murp.files import write_text
from murp.provenance import identity
from murp.runs.folder import read_environment
from murp.runs.run import resolve_device
from murp.runs.stamp import stamp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="WN18RR")
    parser.add_argument("--model", default="murp")
    parser.add_argument("--dim", type=int, default=40)
    parser.add_argument("--lr", type=float, default=50.0)
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--validate-every", type=int, default=10)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    settings = {name: value for name, value in vars(options).items() if name not in ("data", "out")}
    identity()  # of the code as it is now, not as it may be edited before the result is there

    with tempfile.TemporaryDirectory() as scratch:
        began = time.perf_counter()
        run = murp.train(options.data, out=Path(scratch) / "run", **settings)
        wall = time.perf_counter() - began
        protocols = ("standard", "paper")
        began = time.perf_counter()
        reports = {
            split: {p: run.evaluate(split, p).to_dict(by_relation=True) for p in protocols}
            for split in ("valid", "test")
        }
        evaluating = time.perf_counter() - began
        result = {
            "what": f"{options.model} d={options.dim} on {options.data}; checkpoint chosen by standard MRR on valid",
            **stamp(resolve_device(run.config.device)),
            "config": run.config.to_dict(),
            "environment": read_environment(run.path),
            "selected_epoch": run.state["epoch"],
            "wall_seconds": round(wall, 2),
            "evaluation_seconds": round(evaluating, 2),
            "metrics": reports,
            "curve": [
                {"epoch": m["epoch"], "loss": m["loss"], "seconds": m["seconds"]}
                | ({"valid_mrr_standard": m["valid"]["mrr"]} if "valid" in m else {})
                for m in run.metrics()
                if "valid" in m or m["epoch"] == 1
            ],
        }
    write_text(options.out, json.dumps(result, indent=1) + "\n")
    for protocol in protocols:
        test = reports["test"][protocol]
        figures = "  ".join(f"{name} {test[name]:.4f}" for name in ("mrr", "hits@1", "hits@3", "hits@10"))
        print(f"{options.model} test, protocol {protocol}: {figures}")
    print(f"epoch {run.state['epoch']} selected, {wall:.1f} s on {result['environment']['device']}")


if __name__ == "__main__":
    main()
