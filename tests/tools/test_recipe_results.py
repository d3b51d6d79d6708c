"""What the recipes are said to have reached is what is stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import recipe_results
from murp.config import Config
from murp.recipes import completed


def test_the_packages_figures_come_from_the_stored_results() -> None:
    assert recipe_results.main(["--check"]) == 0, "run `make figures`"


def stored(folder: Path, seed: int, mrr: float, **others: Any) -> None:
    config = Config(**completed({"recipe": "wn18rr", "data": "WN18RR", "seed": seed, **others}))
    values = {"settings": config.to_dict(), "figures": {"test": {"standard": {"mrr": mrr}}}}
    (folder / "field").mkdir(exist_ok=True)
    (folder / "field" / f"wn18rr-best-d40-seed{seed}.json").write_text(json.dumps(values))


def test_seeds_are_averaged_and_other_settings_told(tmp_path: Path) -> None:
    for seed, mrr in ((0, 0.470), (1, 0.476), (2, 0.473)):
        stored(tmp_path, seed, mrr, epochs=50)
    (found,) = recipe_results.everything(tmp_path)["wn18rr"]
    assert (found["data"], found["dim"], found["seeds"], found["with_settings"]) == ("WN18RR", 40, 3, {"epochs": 50})
    assert (found["mrr"], found["deviation"]) == (0.473, 0.003)
    assert found["files"][2] == "results/field/wn18rr-best-d40-seed2.json"


def test_results_of_two_settings_are_not_averaged(tmp_path: Path) -> None:
    stored(tmp_path, 0, 0.470)
    stored(tmp_path, 1, 0.476, lr=0.1)
    with pytest.raises(SystemExit, match="are not one setting with several seeds"):
        recipe_results.everything(tmp_path)
