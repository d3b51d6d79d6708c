"""Weights in several files are mapped as if they were in one: nothing is read, and nothing is reserved."""

from __future__ import annotations

import mmap
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from murp.errors import RunError
from murp.runs import checkpoint, mapping, shards
from sharded_checkpoints import write_shards

STATE = {"epoch": 3}


def tables(rows: int, width: int) -> dict[str, Tensor]:
    """Two tables of entities and one of relations, of numbers of different sizes."""
    draw = torch.Generator().manual_seed(rows)
    return {
        "entity": torch.randn(rows, width, generator=draw),
        "subject_bias": torch.randn(rows, generator=draw).double(),
        "half": torch.randn(rows, 3, generator=draw).bfloat16(),
        "translation": torch.randn(4, width, generator=draw),
    }


def mapped(home: Path) -> dict[str, Tensor]:
    """The tables of the checkpoint in the folder ``home``, mapped; its files are closed again."""
    with shards.Opened(home) as found:
        assert found.state == STATE
        return found.mapped()


@given(
    rows=st.integers(0, 9000),
    width=st.sampled_from([1, 3, 40]),
    files=st.sampled_from([1, 2, 3, 7]),
    aligned=st.booleans(),
)
def test_what_is_mapped_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: int, width: int, files: int, aligned: bool
) -> None:
    """Also of files whose rows begin anywhere in a page, as earlier versions wrote them."""
    home, whole = tmp_path_factory.mktemp("shards"), tables(rows, width)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapping, "WORTH", 1 if aligned else 2**60)
        write_shards(whole, STATE, home, files, set(whole) - {"translation"})
    with shards.Opened(home) as opened:
        read = opened.tables()
    for found in (mapped(home), read):
        assert found.keys() == whole.keys()
        for name, values in whole.items():
            assert found[name].dtype == values.dtype
            assert torch.equal(found[name], values)


@pytest.mark.parametrize("files", [1, 4])
def test_all_whole_pages_are_those_of_the_files(tmp_path: Path, files: int) -> None:
    """Only where a file's rows begin and end a page may have been read."""
    whole = {"entity": torch.randn(70_001, 41), "bias": torch.randn(70_001, 17)}
    write_shards(whole, STATE, tmp_path, files, set(whole))
    found = mapped(tmp_path)
    for name, values in found.items():
        assert values.nbytes // files > mapping.WORTH
        assert pages_of(values, tmp_path) >= values.nbytes - 2 * (files + 1) * mmap.PAGESIZE
        assert torch.equal(values, whole[name])


def pages_of(values: Tensor, home: Path) -> int:
    """How many bytes of a table are pages of files in ``home``."""
    begin, end = values.data_ptr(), values.data_ptr() + values.nbytes
    found = 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.partition("/")[2].startswith(str(home)[1:]):
            first, last = (int(place, 16) for place in line.split()[0].split("-"))
            found += max(0, min(last, end) - max(first, begin))
    return found


def test_what_is_mapped_stays_as_it_was(tmp_path: Path) -> None:
    """What is written to it is the process's own, and a training may replace the files."""
    whole, other = {"entity": torch.randn(70_001, 41)}, {"entity": torch.randn(70_001, 41)}
    home, new = tmp_path / "last.shards", tmp_path / "new"
    for place, values in ((home, whole), (new, other)):
        place.mkdir()
        write_shards(values, STATE, place, 3, set(values))
    found = mapped(home)["entity"]
    found[30_000] = 0.0
    assert torch.equal(checkpoint.read(home)[0]["entity"], whole["entity"])
    shutil.rmtree(home)
    new.replace(home)
    assert torch.equal(found[30_001:], whole["entity"][30_001:])
    assert torch.equal(mapped(home)["entity"], other["entity"])


def test_files_of_two_saves_are_never_mixed(tmp_path: Path) -> None:
    """A training replaces the folder after its files were opened, and before they are mapped."""
    whole, other = {"entity": torch.randn(70_001, 41)}, {"entity": torch.randn(70_001, 41)}
    home, new = tmp_path / "last.shards", tmp_path / "new"
    for place, values in ((home, whole), (new, other)):
        place.mkdir()
        write_shards(values, STATE, place, 3, set(values))
    with shards.Opened(home) as opened:
        home.replace(tmp_path / "last.previous.shards")
        new.replace(home)
        shutil.rmtree(tmp_path / "last.previous.shards")
        found = opened.mapped()["entity"]
    assert torch.equal(found, whole["entity"])
    assert torch.equal(mapped(home)["entity"], other["entity"])


def test_rows_that_are_missing_are_damage(tmp_path: Path) -> None:
    whole = {"entity": torch.randn(900, 8)}
    part = {"entity": whole["entity"][:300]}
    for rank in range(2):
        shards.Writer(tmp_path, STATE, rank, 2).write(part, {"entity": 300 * rank}, {"entity": 900})
    with pytest.raises(RunError, match="does not have all rows of entity"):
        mapped(tmp_path)


def test_a_table_may_be_larger_than_the_memory(tmp_path: Path) -> None:
    """The system refuses to reserve so much; nothing of it needs to be reserved."""
    if Path("/proc/sys/vm/overcommit_memory").read_text().strip() == "2":
        pytest.skip("this system reserves memory for everything")
    memory = Path("/proc/meminfo").read_text().splitlines()
    size = 2048 * sum(int(line.split()[1]) for line in memory if line.startswith(("MemTotal", "SwapTotal")))
    with (tmp_path / "table").open("w+b") as file:
        file.truncate(size)
        found = mapping.mapped([size // 4], torch.float32, [mapping.Piece(file, 0, size)])
    assert found[-1] == 0.0
