"""Run folders of every released format are read, evaluated and continued; newer ones are refused."""

from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path

import pytest
import torch

import murp
from murp.errors import RunError
from murp.graph import KnowledgeGraph
from murp.runs import checkpoint, folder

RELEASED = sorted((Path(__file__).parents[1] / "compat").glob("format-*"))


def test_there_is_a_run_of_every_format() -> None:
    assert [path.name for path in RELEASED] == [f"format-{number}" for number in range(1, folder.FORMAT + 1)]


@pytest.mark.parametrize("stored", RELEASED, ids=lambda path: path.name)
def test_a_released_format_is_read_evaluated_and_continued(stored: Path, tmp_path: Path) -> None:
    expected = json.loads((stored / "expected.json").read_text())
    run = murp.load(stored / "run")
    for split in ("train", "test"):
        assert run.evaluate(split, expected["protocol"]).mrr == pytest.approx(expected[f"{split}_mrr"], rel=1e-9)
    shutil.copytree(stored / "run", tmp_path / "run")
    murp.resume(tmp_path / "run", epochs=expected["epochs_after_resuming"])
    tables, _ = checkpoint.read(tmp_path / "run" / folder.LAST)
    wanted = torch.tensor(expected["entity_after_resuming"], dtype=torch.float64)
    # Other processors and versions of PyTorch may round otherwise.
    torch.testing.assert_close(tables["entity"], wanted, rtol=1e-9, atol=1e-12)


def test_a_new_run_says_its_format_and_a_newer_one_is_refused_with_advice(
    small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    run = murp.train(small_tree, out=tmp_path / "run", dim=2, epochs=1, engine="torch", device="cpu").path
    environment = run / folder.ENVIRONMENT
    about = json.loads(environment.read_text())
    assert about["format"] == folder.FORMAT
    environment.write_text(json.dumps({**about, "format": folder.FORMAT + 1}))
    (run / folder.CONFIG).write_text('spin = "up"\n')  # as a newer version might
    for attempt in (murp.load, murp.resume):
        with pytest.raises(
            RunError, match=rf"format {folder.FORMAT + 1}; murp .* reads format {folder.FORMAT}\. Use a"
        ):
            attempt(run)


def test_the_tool_that_made_the_stored_run_still_works(tmp_path: Path) -> None:
    tool = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "make_compat_run.py"))
    tool["main"]([str(tmp_path / "made")])
    expected, made = (json.loads((place / "expected.json").read_text()) for place in (RELEASED[-1], tmp_path / "made"))
    assert made["test_mrr"] == pytest.approx(expected["test_mrr"], rel=1e-9)
