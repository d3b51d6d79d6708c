"""The notebooks run, with few epochs, and have outputs of the kinds that they show."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nbclient", reason="needs nbclient and ipykernel: pip install 'murp[dev]'")
pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel: pip install 'murp[dev]'")
pytest.importorskip("pandas", reason="needs pandas: pip install 'murp[pandas]'")

import nbformat

import notebooks
from murp.graph import KnowledgeGraph

# With a model and an objective for which nothing has to be compiled.
IN_A_KERNEL = """
import murp
from murp.testing import tree

settings = {"dim": 2, "epochs": 2, "validate_every": 0, "engine": "torch"}
run = murp.train(tree(), model="distmult", objective="bernoulli", out="run", **settings)
run
---
run.plot("disk")
---
run.explore()
"""


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def reads_ontologies() -> bool:
    return hasattr(KnowledgeGraph, "from_rdf")  # which comes with the readers of ontologies


@pytest.mark.parametrize("name", notebooks.NAMES)
def test_a_notebook_runs_and_shows_what_it_shows(name: str, tmp_path: Path) -> None:
    if name == "your-ontology" and not reads_ontologies():
        pytest.skip("this version reads no ontologies yet")
    stored = code_cells(notebooks.read(name))
    found = notebooks.run_here(notebooks.quickened(notebooks.read(name), 1), tmp_path)
    assert [notebooks.kinds(cell.outputs) for cell in stored] == [notebooks.kinds(shown) for shown in found]


def test_a_kernel_shows_a_bar_a_picture_and_an_explorer(tmp_path: Path) -> None:
    cells = [nbformat.v4.new_code_cell(source) for source in IN_A_KERNEL.split("---\n")]
    found = notebooks.run_in_kernel(nbformat.v4.new_notebook(cells=cells), tmp_path).cells
    bar, run, picture, frame = (output.data for cell in found for output in cell.outputs)
    assert re.search(r'<progress value="(\d+)" max="\1".*epoch 2/2, loss \d+\.\d+', bar["text/html"])
    assert "distmult d=2" in run["text/html"]
    assert "image/png" in picture
    address = re.search(r'<iframe src="http://127\.0\.0\.1:(\d+)/"', frame["text/html"])
    assert address is not None
    with pytest.raises(OSError, match="refused"):  # it ended with the kernel
        socket.create_connection(("127.0.0.1", int(address[1])), timeout=5)


@pytest.mark.parametrize("name", notebooks.NAMES)
def test_a_stored_notebook_was_run_from_top_to_bottom(name: str) -> None:
    cells = code_cells(notebooks.read(name))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [output for cell in cells for output in cell.outputs if output.output_type == "error"]


def test_a_failing_cell_is_told(tmp_path: Path) -> None:
    broken = notebooks.read("tree-in-the-disk")
    code_cells(broken)[0].source = "1 / 0"
    with pytest.raises(ZeroDivisionError):
        notebooks.run_here(broken, tmp_path)


def test_epochs_are_made_few_wherever_they_are_said() -> None:
    quick = notebooks.quickened(notebooks.read("tree-in-the-disk"), 1)
    said = re.findall(r'epochs(?:=|": )(\d+)', "".join(cell.source for cell in quick.cells))
    assert said == ["1"]
