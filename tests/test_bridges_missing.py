"""A bridge without its library names the extra to install."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import pytest

from murp import bridges
from murp.errors import MurpError

BRIDGES = [("sklearn", "sklearn", "sklearn"), ("pykeen", "pykeen", "judges")]


def test_every_bridge_is_asked() -> None:
    assert sorted(bridge for bridge, _, _ in BRIDGES) == sorted(
        one.name for one in pkgutil.iter_modules(bridges.__path__)
    )


@pytest.mark.parametrize(("bridge", "library", "extra"), BRIDGES)
def test_the_extra_is_named(bridge: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name == library or name.startswith(f"{library}.")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, f"murp.bridges.{bridge}", raising=False)
    with pytest.raises(MurpError, match=rf"murp\.bridges\.{bridge} needs .*: pip install 'murp\[{extra}\]'"):
        importlib.import_module(f"murp.bridges.{bridge}")
