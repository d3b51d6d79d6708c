"""The commands of pages with long trainings run: docs/field.md, scale.md, large-graphs.md and gallery.md.

They run as they are on the page, with these changes:

- Graphs are small. ``MURP_DATA`` names a folder where WN18RR and the other datasets are a tree of 63 entities.
- Every training has a few epochs (:func:`shortened`), and torchrun starts two processes.
- Without a GPU, ``--device cuda`` is ``--device cpu``, and ``--tables host`` is left out: there every table is in host
  memory.
- Of the command for two machines, torchrun's and murp's own parsers read the options; nothing is started.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import urllib.request
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from browsing import BROWSER
from page_code import ROOT, commands, fenced, page
from ranks_of_pages import said_in
from run_on_ranks import on_ranks
from torch.distributed.run import parse_args as read_torchrun

import explorer_screenshots
import guides
from examples import PATIENCE
from forked import Forked
from murp.cli import demo
from murp.cli.main import main, parser
from murp.explorer import animation, tree_demo
from trees import tree

DATASETS = ("WN18RR", "FB15k-237", "NELL-995-h100", "UMLS")
GPU_ONLY = {"--device cuda": "--device cpu", "--tables host": ""}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands run; the named datasets are there, small."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MURP_DATA", str(tmp_path / "data"))
    for name in DATASETS:
        tree().save(tmp_path / "data" / name)
    return tmp_path


def shortened(line: str, **values: object) -> list[str]:
    """The words of a command after ``murp``; a training has one epoch, or these options in the place of its own."""
    words = shlex.split(line, comments=True)[1:]
    if words[0] == "train":
        for name, value in ({"epochs": 1} | values).items():
            if f"--{name}" in words:
                words[words.index(f"--{name}") + 1] = str(value)
            else:
                words += [f"--{name}", str(value)]
    return words


@pytest.mark.filterwarnings("ignore:.* as published")
def test_the_field(folder: Path) -> None:
    """Rows that differ only in their dataset are the same training here."""
    rows = {tuple(shortened(line, data="WN18RR")): line for line in commands("docs/field.md")}
    assert {shlex.split(line)[3] for line in commands("docs/field.md")} == set(DATASETS)
    assert len(rows) > 100
    for line in rows.values():
        assert main([*shortened(line), "--quiet"]) == 0, line
        (made,) = Path("runs").iterdir()
        assert (made / "last.safetensors").exists()
        shutil.rmtree(made)  # one of them takes 100 MB


@pytest.mark.filterwarnings("ignore:.* as published")
def test_many_processes(folder: Path) -> None:
    """The ranks are started by torchrun's launcher; see ``run_on_ranks.py``."""
    lines = [line for code in fenced("docs/scale.md", "sh") for line in guides.commands(code) if "torchrun" in line]
    assert len(lines) == 3
    for line in lines:
        launched = read_torchrun(shlex.split(line)[1:])
        assert (launched.module, launched.training_script) == (True, "murp")
        words = shortened(shlex.join(["murp", *launched.training_script_args]))
        assert parser(words).parse_args(words).out
        if launched.nnodes == "1:1":
            assert launched.standalone
            told = on_ranks(said_in, 2, folder, words, restarts=launched.max_restarts)
            assert told == ([None, None] if launched.max_restarts else [0, 0])
            assert "trained murp" in (folder / "out0").read_text()
        else:
            assert (launched.nnodes, launched.rdzv_backend) == ("2", "c10d")
    assert sorted(path.name for path in Path("runs").iterdir()) == ["many", "safe"]


def test_large_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    """Both pages with these commands: large-graphs.md makes the graph that scale.md trains on."""
    pytest.importorskip("faiss", reason="needs FAISS: pip install 'murp[index]'")
    rows = [(f"Q{i}", "part_of", f"Q{i % 25}") for i in range(25, 1200)]
    rows += [(f"Q{i}", "beside", f"Q{(i + 25 * step) % 1200}") for i in range(1200) for step in (1, 3, 7)]
    Path("facts").mkdir()
    for part in range(2):
        columns = zip(*rows[part::2], strict=True)
        table = pa.table(dict(zip(("head", "relation", "tail"), map(list, columns), strict=True)))
        pq.write_table(table, f"facts/{part}.parquet")
    Path("questions.tsv").write_text("Q42\tpart_of\nQ7\tbeside\n", encoding="utf-8")
    lines = commands("docs/large-graphs.md")
    lines += [line for line in commands("docs/scale.md") if "WN18RR" not in line]
    assert len(lines) == 9 + 4
    for line in lines:
        for needed, instead in {} if torch.cuda.is_available() else GPU_ONLY.items():
            line = line.replace(needed, instead)
        # Points of the plane lie in cells even after a short training.
        assert main(shortened(line, epochs=5, dim=2)) == 0, line
    assert capsys.readouterr().out.count("protocol sampled: 1,000 candidates") == 4
    assert pq.read_table("answers.parquet").num_rows == 20
    assert all(any(option in line for line in lines) for option in GPU_ONLY)


@BROWSER[0]
@BROWSER[1]
@pytest.mark.usefixtures("copied")
def test_the_gallery(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the page, but for the pictures: one browser takes all of them at the end. All is small."""
    monkeypatch.setattr(demo, "ROOT", "furniture.n.01")
    monkeypatch.setattr(tree_demo, "DIMENSIONS", (2, 3))
    monkeypatch.setattr(tree_demo, "EPOCHS", 1)
    monkeypatch.setattr(animation, "FRAMES", 2)
    Path("docs").mkdir()
    pictures = explorer_screenshots.PICTURES
    small = {name: (view, 400, 300, *others) for name, (view, _, _, *others) in pictures.items()}
    monkeypatch.setattr(explorer_screenshots, "PICTURES", small)
    for name in (*(f"explorer-{name}.png" for name in pictures), "asia.png", "gallery-tree.gif"):
        Path("docs", name).write_bytes(b"the picture of before")
    shots = []
    for line in [line for code in fenced("docs/gallery.md", "sh") for line in guides.commands(code)]:
        if line.startswith("python "):
            _, script, *words, name = shlex.split(line)
            assert words == ["runs/murp", "runs/mure", "docs"]
            assert f"(explorer-{name}.png)" in page("docs/gallery.md")
            shots.append(name)
        elif line.startswith("murp demo"):
            show_until_interrupted(line)
        else:
            assert main(shortened(line)) == 0, line
    assert (ROOT / script).samefile(explorer_screenshots.__file__)
    monkeypatch.setattr(sys, "argv", [script, *words, *shots])
    explorer_screenshots.main()
    assert Path("tree.gif").read_bytes().startswith(b"GIF")
    for name in ("asia.png", *(f"explorer-{name}.png" for name in shots)):
        assert Path("docs", name).read_bytes().startswith(b"\x89PNG"), name


def show_until_interrupted(line: str) -> None:
    """A command that serves until Ctrl-C, on a free port."""
    ours, theirs = os.pipe()
    process = Forked(*shlex.split(line)[1:], "--port", "0", out=theirs)
    os.close(theirs)
    try:
        with open(ours) as printed:
            address = printed.readline().removeprefix("explorer: ").split()[0]
        with urllib.request.urlopen(address, timeout=PATIENCE) as shown:
            assert shown.status == 200
    finally:
        process.send_signal(signal.SIGINT)
    assert process.wait() == 0
