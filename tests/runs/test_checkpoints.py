"""Checkpoints: proven before they count, found out when damaged, and never the only one."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

import murp
from murp.errors import RunError
from murp.graph import KnowledgeGraph
from murp.runs import checkpoint, tensor_file
from murp.runs.checkpoint import previous
from murp.runs.tensor_file import DamagedError, verify

QUICK: dict[str, Any] = {
    "dim": 3, "epochs": 4, "lr": 1.0, "batch_size": 16, "negatives": 2, "device": "cpu", "engine": "torch",
    "validate_every": 1, "save_every": 0,
}  # fmt: skip
TABLES = {"entity": torch.arange(12.0).reshape(4, 3), "bias": torch.tensor([1.5, -2.5])}
STATE = {"epoch": 3, "best_mrr": 0.25}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "last.safetensors"
    checkpoint.write(path, TABLES, STATE)
    return path


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


def tables_of(path: Path) -> dict[str, list[Any]]:
    return {name: values.tolist() for name, values in checkpoint.read(path)[0].items()}


def test_what_was_written_is_read_by_us_and_by_the_library(written: Path) -> None:
    tables, state = checkpoint.load(written)
    assert state == STATE == verify(written)
    theirs = safetensors.torch.load_file(written)
    for name, values in TABLES.items():
        assert torch.equal(values, tables[name])
        assert torch.equal(values, theirs[name])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [0, 1, tensor_file.PIECE // 4 + 3])
def test_tables_of_any_size(dtype: torch.dtype, rows: int, tmp_path: Path) -> None:
    """Empty, and longer than the pieces in which a file is checked."""
    tables = {"b": torch.rand(rows, dtype=dtype), "a": torch.rand(2, rows, dtype=dtype)}
    checkpoint.write(tmp_path / "last.safetensors", tables, STATE)
    read, _ = checkpoint.read(tmp_path / "last.safetensors")
    assert all(torch.equal(read[name], values) for name, values in tables.items())


@given(data=st.data())
def test_any_changed_bit_is_found(data: st.DataObject, written: Path) -> None:
    """In the tables, the state, the checksums, the padding: both ways of reading refuse, and both say why."""
    content = bytearray(written.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    damaged = written.with_name("damaged.safetensors")
    damaged.write_bytes(content)
    for reader in (checkpoint.read, verify):
        with pytest.raises(DamagedError, match=r"damaged\.safetensors"):
            reader(damaged)


def test_the_format_of_a_newer_version_is_told_from_a_damaged_one(written: Path, tmp_path: Path) -> None:
    """A newer file is not damaged: nothing older may take its place."""
    content = written.read_bytes()
    newer = tmp_path / "newer.safetensors"
    newer.write_bytes(content.replace(b'"format": "1"', b'"format": "9"'))
    with pytest.raises(DamagedError, match="format cannot be '9'"):
        verify(newer)
    text = '{"epoch": 3, "best_mrr": 0.25, "format": 9}'
    tensors = safetensors.torch.load_file(written)
    metadata = {
        "format": "9", "state": text, "state_checksum": tensor_file._text_checksum(text),
        "checksum": tensor_file.checksum(tensors),
    }  # fmt: skip
    safetensors.torch.save_file(tensors, newer, metadata)
    for reader in (checkpoint.load, verify, checkpoint.recover):
        with pytest.raises(RunError, match="Use the version of murp that wrote it") as caught:
            reader(newer)
        assert not isinstance(caught.value, DamagedError)


@given(data=st.data())
def test_a_file_cut_short_or_made_longer_is_found(data: st.DataObject, written: Path) -> None:
    content = written.read_bytes()
    damaged = written.with_name("damaged.safetensors")
    end = data.draw(st.integers(0, len(content) + 9).filter(lambda end: end != len(content)))
    damaged.write_bytes((content + bytes(9))[:end])
    for reader in (checkpoint.read, verify):
        with pytest.raises(DamagedError):
            reader(damaged)


def test_one_older_checkpoint_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "last.safetensors"
    for epoch in range(4):
        checkpoint.write(path, TABLES, {"epoch": epoch})
        assert verify(path) == {"epoch": epoch}
        assert not epoch or verify(previous(path)) == {"epoch": epoch - 1}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["last.previous.safetensors", "last.safetensors"]


def test_what_cannot_be_read_back_does_not_replace_what_could(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that loses what it was given: the new file is dropped, both old ones stand."""
    path = tmp_path / "last.safetensors"
    for epoch in (1, 2):
        checkpoint.write(path, TABLES, {"epoch": epoch})
    whole = tensor_file.write

    def lossy(part: Path, tables: Any, state: Any) -> None:
        whole(part, tables, state)
        damage(part)

    monkeypatch.setattr(tensor_file, "write", lossy)
    with pytest.raises(RunError, match=r"cannot be read back.*previous checkpoint is untouched.*--resume"):
        checkpoint.save(path, TABLES, {"epoch": 3})
    assert verify(path) == {"epoch": 2}
    assert verify(previous(path)) == {"epoch": 1}
    assert len(list(tmp_path.iterdir())) == 2


def half_way(graph: KnowledgeGraph, out: Path) -> Path:
    """A run that has two of its four epochs behind it."""
    path = murp.train(graph, out=out, **{**QUICK, "epochs": 2}).path
    config = path / "config.toml"
    config.write_text(config.read_text().replace("\nepochs = 2\n", "\nepochs = 4\n"))
    return path


@pytest.mark.parametrize("harm", ["flip", "cut", "remove"])
def test_a_damaged_newest_checkpoint_gives_way_to_the_one_before_and_the_resumed_run_is_exact(
    harm: str, small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    calm = murp.train(small_tree, out=tmp_path / "calm", **QUICK).path
    run = half_way(small_tree, tmp_path / "run")
    last = run / "last.safetensors"
    if harm == "flip":
        damage(last)
    elif harm == "cut":
        last.write_bytes(last.read_bytes()[:100])
    else:
        last.unlink()
    with pytest.warns(UserWarning, match=r"last\.safetensors.*last\.previous\.safetensors, of epoch 1"):
        assert murp.load(run, checkpoint="last").state["epoch"] == 1
    with pytest.warns(UserWarning, match=r"last\.previous"):
        murp.resume(run)
    assert tables_of(run / "last.safetensors") == tables_of(calm / "last.safetensors")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        murp.load(run)
        murp.load(run, checkpoint="last")


def test_a_damaged_best_checkpoint_gives_way_to_the_one_before(tmp_path: Path) -> None:
    best = tmp_path / "best.safetensors"
    for epoch in (2, 3):
        checkpoint.write(best, TABLES, {"epoch": epoch})
    damage(best)
    with pytest.warns(UserWarning, match=r"best\.previous\.safetensors, of epoch 2"):
        assert checkpoint.load(best)[1]["epoch"] == 2


def test_resuming_never_leaves_a_damaged_checkpoint_as_the_only_other_one(
    small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    run = half_way(small_tree, tmp_path / "run")
    damage(run / "last.safetensors")
    with pytest.warns(UserWarning, match="Using the checkpoint before"):
        checkpoint.recover(run / "last.safetensors")
    assert verify(run / "last.safetensors")["epoch"] == 1
    assert not previous(run / "last.safetensors").exists()


def test_both_damaged_is_an_error_that_names_both_and_the_way_out(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    run = half_way(small_tree, tmp_path / "run")
    for name in ("last", "last.previous"):
        damage(run / f"{name}.safetensors")
    for attempt in (lambda: murp.load(run, checkpoint="last"), lambda: murp.resume(run)):
        with pytest.raises(RunError, match=r"last\.safetensors is damaged.*last\.previous.*--checkpoint best"):
            attempt()
