"""Whether an item has been run, as it would be run now."""

from __future__ import annotations

from typing import Any

from murp.errors import RunError
from murp.paper.experiments import Experiments, stored, stored_run


def is_done(experiments: Experiments, item: str) -> bool:
    """Whether an item is stored with these settings, and in each cell with at least as many seeds as they ask for.

    An item stored before its runs' settings changed, or whose runs are gone, is not done.
    """
    content = stored(experiments.out, item)
    if content is None or content.get("settings") != experiments.settings[item]:
        return False
    try:
        cells, names = content.get("cells", []), set(every_name(content))
        records = [
            stored_run(experiments.out, name) for name in names if (experiments.out / "runs" / f"{name}.json").exists()
        ]
        training = {**experiments.settings["training"], **experiments.settings[item].get("training", {})}
        alike = [record["settings"].items() >= training.items() for record in records]
        whole = len(records) == len(names) and bool(cells or not names)  # an older figure has runs and no cells
        return whole and all(alike) and all(len(cell["runs"]) >= experiments.seeds for cell in cells)
    except (AttributeError, LookupError, TypeError) as error:
        raise RunError(
            f"{experiments.out / item}.json, or a run it rests on, is not as `murp paper run` stores it ({error!r}). "
            "Remove the file you changed and run the item again."
        ) from error


def every_name(item: dict[str, Any]) -> list[str]:
    """Every run that an item names."""
    cells = [*item.get("cells", []), *item.get("grid", [])]
    own = [model["run"] for model in item.get("models", {}).values()]
    return [*own, *(name for cell in cells for name in (*cell["runs"], *cell.get("tried", ())))]
