"""Optional packages: the error says which extra installs them."""

from __future__ import annotations

import importlib
from typing import Any

from murp.errors import MurpError


def need(package: str, extra: str, what: str, error: type[MurpError] = MurpError) -> Any:
    """The module ``package``; if it is not installed, an error that says ``what`` needs it and how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise error(f"{what} needs {package}, which is not installed: pip install 'murp[{extra}]'.") from None
