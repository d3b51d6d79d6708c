"""Write the numbers of README.md and docs/types.md from the stored results; with --check, say if they are up to date.

    python tools/figures.py
    python tools/figures.py --quickstart runs/quickstart   # first store what `make quickstart` reached

A block of a page between ``<!-- figures: NAME -->`` and ``<!-- end -->`` is replaced by the text that the
function NAME makes from files under results/.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import origins
from murp.paper.evidence import METRICS, decimals
from murp.paper.experiments import published
from murp.recipes import RECIPES, results

ROOT = Path(__file__).resolve().parent.parent


def result(name: str) -> dict[str, Any]:
    """One stored result."""
    values: dict[str, Any] = json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return values


def code(*stored: dict[str, Any]) -> str:
    """The commits that results come from, or what else is to be said."""
    return "; ".join(dict.fromkeys(origins.said(each, ROOT / "results") for each in stored))


def cells(values: Iterable[float]) -> str:
    """Figures as cells of a table's row."""
    return " | ".join(map(decimals, values))


def wn18rr() -> str:
    """Both models under both protocols, beside the paper's row."""
    lines = ["| WN18RR, d=40, test | protocol | MRR | H@10 | H@3 | H@1 | training |", "|---|---|---|---|---|---|---|"]
    paper = published()["table1"]["WN18RR"]
    for model, label in (("murp", "MuRP"), ("mure", "MuRE")):
        stored = result(f"gpu_wn18rr-{model}-d40")
        for protocol in ("standard", "paper"):
            test = stored["figures"]["test"][protocol]
            figures = cells(test[name] for name in METRICS)
            lines.append(f"| {label} | `{protocol}` | {figures} | {stored['figures']['training_seconds']:.1f} s |")
        lines.append(f"| {label}, as the paper prints it | (`paper`) | {cells(paper[model]['40'])} | |")
    settings, machine = stored["settings"], stored["machine"]
    lines += [
        "",
        f"One run each: learning rate {settings['lr']:g}, batch {settings['batch_size']}, {settings['negatives']} "
        f"negatives, {settings['epochs']} epochs, seed {settings['seed']}, {settings['dtype']}, engine "
        f"{settings['engine']}, {machine['device']}, murp {machine['murp']}, {code(stored)}; checkpoint chosen by "
        "MRR on valid.",
    ]
    return "\n".join(lines)


def cpu() -> str:
    """Speed on the CPU, as ratios measured in one run."""
    stored = [result(f"cpu_{name}") for name in ("step", "evaluation", "reading")]
    (step, evaluation, reading), made = (each["figures"] for each in stored), code(*stored)
    machine, parsed, ranked = stored[0]["machine"], reading["parsed"], evaluation["seconds"]["murp"]
    triples = sum(reading["graph"][split] for split in ("train", "valid", "test"))
    fair = [f"{step['times_faster']['numba against geoopt, sparse']:.0f} times faster than geoopt with sparse rows"]
    if "numba against pykeen" in step["times_faster"]:
        fair.append(f"MuRE is {step['times_faster']['numba against pykeen']:.0f} times faster than PyKEEN's")
    return (
        f"On {machine['cores']} cores ({machine['device']}) an epoch of MuRP d=40 on WN18RR takes "
        f"{step['epoch_seconds']['murp, numba']:.1f} s. It is {step['times_faster']['numba against textbook']:.0f} "
        f"times faster than with a textbook dense float64 step and {'; '.join(fair)} (all measured in the same run). "
        f"The filtered evaluation of the test set takes {ranked['median']:.2f} s, {evaluation['times_faster']:.0f} "
        f"times faster than one query at a time. {_begun(stored[2], machine)} numbering and splitting {triples:,} "
        f"triples takes {parsed['seconds']['median']:.0f} s and {parsed['peak_bytes'] / 2**30:.1f} GiB ({made}). "
        "[docs/benchmarks.md](docs/benchmarks.md) has all measurements, also on the GPU."
    )


def _begun(reading: dict[str, Any], machine: dict[str, Any]) -> str:
    """The first word of the sentence on reading, with the machine if it was another one."""
    other = reading["machine"]["device"]
    return "Reading," if other == machine["device"] else f"On another machine ({other}), reading,"


def quickstart() -> str:
    """What `make quickstart` reached."""
    stored = result("quickstart")
    test, config = stored["test"], stored["config"]
    return (
        f"*The parts of Asia, with Asia in the centre: `make quickstart`, {config['model']} d={config['dim']}, "
        f"{config['epochs']} epochs, seed {config['seed']}; test MRR {decimals(test['mrr'])}, H@10 "
        f"{decimals(test['hits@10'])}, protocol {test['protocol']}; {code(stored)}. A point's distance from the centre "
        "is its true hyperbolic distance.*"
    )


def newcomer() -> str:
    """What `make quickstart` takes, of time and of disk."""
    try:
        stored = result("newcomer")
    except FileNotFoundError:
        return "`python benchmarks/newcomer.py` measures how long this takes, and how much disk space."
    times, sizes, machine = stored["figures"]["seconds"], stored["figures"]["bytes"], stored["machine"]
    of = {name: f"{value / 2**30:.2f} GiB" for name, value in sizes.items()}
    source = (
        "from a local folder, so without a download" if stored["settings"]["local_packages"] else "with the download"
    )
    return (
        f"A fresh clone took {times['first prediction']:.0f} s to its first prediction on {machine['cores']} cores "
        f"({machine['device']}), {times['installed']:.0f} s of them for installing the packages ({source}). The "
        f"environment takes {of['installed']}, and {of['environment']} after the first run, when Python has stored its "
        f"bytecode. PyTorch {stored['settings']['torch']} takes {of['PyTorch']} of it. With the developers' tools it "
        f"takes {of[TOOLS]} (`du`; `benchmarks/newcomer.py`, {code(stored)})."
    )


def store_quickstart(path: str) -> None:
    """Store settings, environment and test metrics of a quickstart run, and its picture."""

    import murp
    from murp.plots.disk import draw
    from murp.runs.folder import read_environment
    from murp.runs.stamp import stamp

    run = murp.load(path)
    stored = {
        "what": "make quickstart: murp on wordnet-mini; checkpoint chosen by standard MRR on valid",
        **stamp(run.model.device),
        "config": run.config.to_dict(),
        "environment": read_environment(run.path),
        "selected_epoch": run.state["epoch"],
        "seconds": run.metrics()[-1]["seconds"],
        "test": run.evaluate("test").to_dict(by_relation=True),
    }
    text = json.dumps(stored, indent=1) + "\n"
    (ROOT / "results" / "quickstart.json").write_text(text, encoding="utf-8")
    draw(run, head="asia.n.01", relation="has_part", path=ROOT / "docs" / "asia.png")


def recipes() -> str:
    """What the named recipes reached, the paper's own apart."""
    lines = ["| recipe | model | dataset | d | MRR | seeds |", "|---|---|---|---|---|---|"]
    found = [(name, one) for name in RECIPES if name != "paper" for one in results(name)]
    for name, one in found:
        more = "".join(f" --{key.replace('_', '-')} {value}" for key, value in one.with_settings.items())
        spread = f" ± {decimals(one.deviation)}" if one.deviation is not None else ""
        cells = [f"`--recipe {name}{more}`", RECIPES[name].settings["model"], one.data, str(one.dim)]
        lines.append(f"| {' | '.join([*cells, decimals(one.mrr) + spread, str(one.seeds)])} |")
    folder = ROOT / "results" / "field"
    files = [ROOT / file for _, one in found for file in one.files]
    made = dict.fromkeys(origins.said(json.loads(file.read_text(encoding="utf-8")), folder) for file in files)
    protocols = " and ".join(dict.fromkeys(f"`{one.protocol}`" for _, one in found))
    lines += ["", f"MRR on test, protocol {protocols}, checkpoint chosen by MRR on valid ({'; '.join(made)})."]
    return "\n".join(lines)


def types() -> str:
    """What type constraints do to MRR."""
    stored = result("type_constraints")
    lines = [
        "| run | split | MRR, `standard` | MRR, `types` | true answers allowed | entities allowed |",
        "|---|---|---|---|---|---|",
    ]
    for one in stored["figures"]:
        for split in ("valid", "test"):
            found = one[split]
            mrr = cells(found[protocol]["mrr"] for protocol in ("standard", "types"))
            shares = (f"{found[key]:.1%}" for key in ("true_answers_allowed", "entities_allowed"))
            run = f"{one['run']}, {one['settings']['epochs']} epochs"
            lines.append(f"| {run} | {split} | {mrr} | {' | '.join(shares)} |")
    machine = stored["machine"]
    lines += [
        "",
        f"One training each, seed {stored['settings']['seed']}, all facts of the split, both directions; the same "
        "weights under both protocols. The last column is a mean over the questions. Made by "
        f"`benchmarks/type_constraints.py` on {machine['cores']} cores ({machine['device']}), {code(stored)}.",
    ]
    return "\n".join(lines)


TOOLS = "environment with the developers' tools"
PAGES = ("README.md", "docs/types.md")
BLOCKS = {
    "types": types,
    "wn18rr": wn18rr,
    "recipes": recipes,
    "cpu": cpu,
    "quickstart": quickstart,
    "newcomer": newcomer,
}


def filled(page: str) -> str:
    """The page with every block made anew."""
    pattern = re.compile(r"(<!-- figures: (\w+) -->\n)(?:(?!<!-- end -->).)*(<!-- end -->)", re.DOTALL)
    return pattern.sub(lambda found: found[1] + BLOCKS[found[2]]() + "\n" + found[3], page)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a number is out of date")
    parser.add_argument("--quickstart", metavar="RUN", help="first store the metrics and the picture of this run")
    options = parser.parse_args()
    if options.quickstart:
        store_quickstart(options.quickstart)
    pages = {ROOT / name: (ROOT / name).read_text(encoding="utf-8") for name in PAGES}
    if options.check:
        return int(any(filled(page) != page for page in pages.values()))
    origins.refresh(ROOT / "results")
    for path, page in pages.items():
        path.write_text(filled(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
