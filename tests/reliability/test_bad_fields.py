"""Files whose fields lie: headers, archives, settings, states, nesting without end, names that speak to a terminal."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest
from fuzz_oracle import made_run, small_graph
from hypothesis import given
from hypothesis import strategies as st

from murp.cli.text import table
from murp.config import Config
from murp.errors import ConfigError, DataError, MurpError, RunError
from murp.exchange import import_run
from murp.files import fields, parse_json
from murp.graph import KnowledgeGraph
from murp.graph.reading import streams
from murp.graph.storage import MANIFEST
from murp.prediction.calibration import Calibration
from murp.prediction.queries import read_queries
from murp.runs import checkpoint, folder
from murp.training.state import State

DEEP = "[" * 100_000


@pytest.mark.parametrize("size", [2**60, 2**63, 2**64 - 1, 10**9])
def test_a_safetensors_header_that_lies(size: int, tmp_path: Path) -> None:
    run = made_run(tmp_path / "run")
    data = (run / folder.LAST).read_bytes()
    (run / folder.LAST).write_bytes(size.to_bytes(8, "little") + data[8:])
    with pytest.raises(RunError, match=r"last\.safetensors is damaged: it cannot be read"):
        checkpoint.load(run / folder.LAST)
    (tmp_path / "x.safetensors").write_bytes(size.to_bytes(8, "little") + b"{}")
    with pytest.raises(DataError, match=r"x\.safetensors cannot be read"):
        import_run(tmp_path / "x.safetensors", tmp_path / "out")


def test_an_npz_that_unpacks_to_more_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "ALWAYS_UNPACKED", 1 << 20)
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("entity.npy", b"\0" * (8 << 20))
    with pytest.raises(DataError, match=r"x\.npz: unpacks to more than"):
        import_run(path, tmp_path / "out")


def test_an_npz_of_objects_is_not_unpickled(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return pytest.fail, ("a pickle was opened",)

    sink = io.BytesIO()
    np.savez(sink, about=np.array([Trap()], dtype=object))
    (tmp_path / "x.npz").write_bytes(sink.getvalue())
    with pytest.raises(DataError, match="cannot be read: Object arrays cannot be loaded"):
        import_run(tmp_path / "x.npz", tmp_path / "out")


WHOLE = [name for name, kind in get_type_hints(Config).items() if kind is int]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dimm = 3", "unknown setting 'dimm'. Did you mean 'dim'"),
        ("dim = 3\ndim = 4", "Cannot overwrite a value"),
        ('dim = "3"', "dim must be a whole number"),
        ("dim = 3.0", "dim must be a whole number"),
        ("tensorboard = 1", "tensorboard must be true or false"),
        ("lr = nan", "lr must be a finite number"),
        ("lr = 1" + "0" * 400, "lr is beyond the largest number"),
        ("lr = 1" + "0" * 5000, "is not a readable TOML file"),
        *((f"{name} = 12345678901234567890123456", f"{name} must be at most 9223372036854775807") for name in WHOLE),
        ("lr = [1]", "lr must be a number"),
        ("[lr]\nx = 1", "lr must be a number"),
        ("lr = " + DEEP, "nested too deeply"),
        ("lr = \0", "is not a readable TOML file"),
    ],
)
def test_a_configuration_that_is_none(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"c\.toml") as raised:
        Config.from_mapping(Config.read(path), str(path))
    assert words in str(raised.value)


def test_nesting_without_end(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(DEEP)
    for half in (r'"\ud800"', rb'{"\uDFFF": 1}', r'["\ud83d \ude00"]'):
        with pytest.raises(ValueError, match="not valid Unicode"):
            parse_json(half)
    assert parse_json(r'"\ud83d\ude00 \\ud800"') == "😀 \\ud800"
    run = made_run(tmp_path / "run")
    for name, read in {
        folder.CALIBRATION: lambda path: Calibration.read(path),
        folder.ENVIRONMENT: lambda path: folder.read_environment(path.parent),
        f"graph/{MANIFEST}": lambda path: KnowledgeGraph.load(path.parent),
        "asked.jsonl": lambda path: list(read_queries(path, small_graph())),
    }.items():
        (run / name).write_text(DEEP)
        with pytest.raises(MurpError, match=rf"{Path(name).name}.*nested too deeply"):
            read(run / name)
    (run / folder.METRICS).write_text(f'{DEEP}\n{{"epoch": 1, "loss": 1.0}}\n')
    with pytest.raises(RunError, match=r"metrics\.jsonl, line 1: not a record of an epoch: it is nested too deeply"):
        folder.read_metrics(run)


def test_a_name_does_not_speak_to_the_terminal() -> None:
    shown = table(["name"], [["\x1b[2Jgone"], ["plain ü 木"]])
    assert shown.splitlines()[1:] == ["\\x1b[2Jgone", "plain ü 木"]


kinds = st.sampled_from([(int, 1), (str, "x"), (int | float, 0.5), (dict, {}), (list, []), (int | None, None)])
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.text(), kinds, min_size=1), junk, st.data())
def test_fields_take_what_fits_and_name_what_does_not(
    wanted: dict[str, tuple[type, object]], value: object, data: st.DataObject
) -> None:
    good = {name: example for name, (_, example) in wanted.items()}
    shapes = {name: kind for name, (kind, _) in wanted.items()}
    assert fields(good, shapes) == good
    name = data.draw(st.sampled_from(sorted(wanted)))
    fits = isinstance(value, shapes[name]) and not isinstance(value, bool)
    if isinstance(value, float) and not np.isfinite(value):
        fits = False
    if fits:
        fields({**good, name: value}, shapes)
    else:
        with pytest.raises(ValueError, match="field"):
            fields({**good, name: value}, shapes)
    with pytest.raises(ValueError, match="field"):
        fields({key: part for key, part in good.items() if key != name}, shapes)


@given(st.dictionaries(st.sampled_from([*State().to_dict(), "x"]), junk))
def test_a_state_is_whole_or_refused(values: dict[str, object]) -> None:
    wrong = "x" in values or any(not _fits(name, value) for name, value in values.items())
    if wrong:
        with pytest.raises(RunError, match="state is not one this version knows"):
            State.from_dict({"epoch": 1, **values}, Path("last.safetensors"))
    else:
        state = State.from_dict({"epoch": 1, **values}, Path("last.safetensors")).to_dict()
        assert json.loads(json.dumps(state)) == state


def _fits(name: str, value: object) -> bool:
    if value is None:
        return name.startswith("best")
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1000
    if name in ("epoch", "chunk", "stale"):
        return isinstance(value, int) and whole and value >= 0
    return whole or (name in ("loss", "seconds", "best_mrr") and isinstance(value, float) and np.isfinite(value))
