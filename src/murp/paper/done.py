"""Whether an item has been run, as it would be run now."""

from __future__ import annotations

from murp.errors import RunError
from murp.paper.lab import Lab, stored, stored_run


def is_done(lab: Lab, item: str) -> bool:
    """Whether an item is stored with the lab's settings, and in each cell with at least as many seeds as it asks for.

    An item stored before its runs' settings changed, or whose runs are gone, is not done.
    """
    content = stored(lab.out, item)
    if content is None or content.get("settings") != lab.settings[item]:
        return False
    try:
        cells = content.get("cells", [])
        names = {
            name for cell in [*cells, *content.get("grid", [])] for name in (*cell["runs"], *cell.get("tried", ()))
        }
        names |= {model["run"] for model in content.get("models", {}).values()}
        records = [stored_run(lab.out, name) for name in names if (lab.out / "runs" / f"{name}.json").exists()]
        training = {**lab.settings["training"], **lab.settings[item].get("training", {})}
        alike = [record["settings"].items() >= training.items() for record in records]
        return len(records) == len(names) and all(alike) and all(len(cell["runs"]) >= lab.seeds for cell in cells)
    except (AttributeError, LookupError, TypeError) as error:
        raise RunError(
            f"{lab.out / item}.json, or a run it rests on, is not as `murp paper run` stores it ({error!r}). Remove "
            "the file you changed and run the item again."
        ) from error
