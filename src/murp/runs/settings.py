"""The settings that determine a checkpoint's weights, stored in its state.

Anyone can edit ``config.toml``. A model with other settings may have tables of the same shapes, and would silently give
other answers with these weights; a training would continue with other settings. So a checkpoint stores its settings,
and a run is opened and continued only if its ``config.toml`` agrees. Settings that may change (``free`` in
:class:`murp.Config`) are not stored: device and engine, number of epochs, how often to validate and to save, where the
data is. Older checkpoints have no settings, and are opened without this check.
"""

from __future__ import annotations

import json
import reprlib
from pathlib import Path
from typing import Any

from murp.config import Config
from murp.errors import RunError
from murp.settings import current

SETTINGS = "settings"


def bind(state: dict[str, Any], config: Config) -> dict[str, Any]:
    """``state`` with the settings that decide the weights."""
    return {**state, SETTINGS: _deciding(config)}


def checked(state: dict[str, Any], config: Config, file: Path, settings: Path) -> dict[str, Any]:
    """The state in the checkpoint ``file`` without its settings, which must be those of ``config``, read from
    ``settings``."""
    trained = state.get(SETTINGS, {})
    if not isinstance(trained, dict):
        raise RunError(f"{file}: the checkpoint's settings cannot be {reprlib.repr(trained)}.")
    deciding = _deciding(config).items()
    other = {name: value for name, value in deciding if name in trained and current(name, trained[name]) != value}
    if other:
        raise RunError(
            f"{settings} says {_shown(other)}, but the weights in {file.name} were trained with "
            f"{_shown({name: trained[name] for name in other})}. Put that back, or train a new run with the other "
            "settings (`murp train --config`)."
        )
    return {name: value for name, value in state.items() if name != SETTINGS}


def _deciding(config: Config) -> dict[str, Any]:
    free = config.free()
    return {name: value for name, value in config.to_dict().items() if name not in free}


def _shown(values: dict[str, Any]) -> str:
    """As ``config.toml`` has them."""
    return ", ".join(f"{name} = {json.dumps(value)}" for name, value in values.items())
