"""Every item of the paper as a toy, run once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from murp.paper import ITEMS, Lab


@pytest.fixture(scope="session")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("paper")
    lab = Lab(out, device="cpu", quick=True)
    for item in ITEMS.values():
        item(lab)
    return out
