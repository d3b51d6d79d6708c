"""The scripts under reliability/ import each other as plain modules; so do their tests. A fixture of the kernels."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from murp import kernels

sys.path.insert(0, str(Path(__file__).parents[2] / "reliability"))


@pytest.fixture
def no_triton_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for the products of GPUs gets an ImportError, whether they were imported before or not."""
    monkeypatch.delattr(kernels, "triton_products", raising=False)
    monkeypatch.setitem(sys.modules, "murp.kernels.triton_products", None)
