"""The file that stores a search: only one search at a time uses it, and the next one continues where it stopped."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from murp.errors import ConfigError, MurpError, first_line
from murp.extras import need
from murp.files import lock
from murp.graph import KnowledgeGraph
from murp.paths import not_text
from murp.tuning.space import Space

NAME = "murp"
ABOUT = "murp"  # the study's attribute that says what it is a search of
BUSY = 120  # seconds that a process waits for another that writes
FACTOR = 3  # of the trials that come to a rung, one in so many goes on
RUNGS = 2  # before the last epoch
DRAWN = 6  # trials before TPE proposes any; the first of them has the defaults


def optuna() -> Any:
    """The package Optuna, which says nothing by itself; an error that names the extra if it is not installed."""
    package = need("optuna", "tune", "tuning")
    package.logging.set_verbosity(package.logging.ERROR)
    return package


def check_place(storage: Path) -> None:
    """Raise if there can be no storage of this name."""
    if (why := not_text(str(storage))) is not None:
        raise ConfigError(f"{str(storage)!r} cannot be a storage: the name {why}. Choose another --storage.")
    if not storage.name or storage.is_dir():
        raise ConfigError(f"{storage} is a folder. --storage names a file.")


def beside(storage: Path, ending: str) -> Path:
    """A file or folder that belongs to a storage and is beside it: ``tune.db`` → ``tune.db.runs``."""
    return storage.with_name(f"{storage.name}.{ending}")


def runs_of(storage: Path) -> Path:
    """The folder of the runs of a search."""
    return beside(storage, "runs")


def run_of(storage: Path, number: int) -> Path:
    """The run folder of a trial."""
    return runs_of(storage) / f"trial-{number:04d}"


def about(graph: KnowledgeGraph, data: str, space: Space, epochs: int) -> dict[str, Any]:
    """What identifies a search: two searches with the same description are the same. Test is not part of it."""
    digest = hashlib.sha256()
    for part in (graph.train, graph.valid):
        digest.update(part.tobytes())
    counts = {"entities": graph.num_entities, "relations": graph.num_relations}
    told = {
        "graph": graph.name,
        "data": data,
        **counts,
        "facts": digest.hexdigest()[:16],
        "epochs": epochs,
        **space.to_dict(),
    }
    found: dict[str, Any] = json.loads(json.dumps(told))
    return found


def opened(storage: Path, *, seed: int, first_rung: int = 1, make: bool = False) -> Any:
    """The study in a file, with its sampler and its pruner; ``make``: a new one if there is none."""
    package = optuna()
    check_place(storage)
    if not make and not storage.exists():
        raise ConfigError(f"there is no storage of a search at {storage}. `murp tune --storage` makes one.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # parts of it are called experimental
        sampler = package.samplers.TPESampler(
            multivariate=True, group=True, constant_liar=True, seed=seed, n_startup_trials=DRAWN
        )
        pruner = package.pruners.SuccessiveHalvingPruner(min_resource=first_rung, reduction_factor=FACTOR)
        try:
            url = f"sqlite:///{quote(str(storage.resolve()))}"
            kept = package.storages.RDBStorage(url, engine_kwargs={"connect_args": {"timeout": BUSY}})
            if make:
                return package.create_study(
                    study_name=NAME,
                    storage=kept,
                    sampler=sampler,
                    pruner=pruner,
                    direction="maximize",
                    load_if_exists=True,
                )
            return package.load_study(study_name=NAME, storage=kept, sampler=sampler, pruner=pruner)
        except KeyError:
            raise ConfigError(f"{storage} holds no search of `murp tune`. Choose another --storage.") from None
        except (OSError, _database_error()) as error:
            raise ConfigError(
                f"{storage} cannot be used as a storage: {first_line(error)}. Choose another --storage."
            ) from None


def _database_error() -> type[Exception]:
    from sqlalchemy.exc import DatabaseError

    found: type[Exception] = DatabaseError
    return found


def check_same(study: Any, storage: Path, what: dict[str, Any]) -> None:
    """Write the description of the search into a new study; raise if an existing study has another one."""
    there = study.user_attrs.get(ABOUT)
    if there is None:
        study.set_user_attr(ABOUT, what)
        return
    old, new = _flat(there), _flat(what)
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if names:
        shown = ", ".join(f"{name}: {old.get(name, 'none')} there, {new.get(name, 'none')} asked for" for name in names)
        raise ConfigError(f"{storage} holds another search ({shown}). Choose another --storage, or ask for the same.")


def _flat(what: dict[str, Any]) -> dict[str, Any]:
    """What two searches are compared by. Where the data lies does not matter: its facts do."""
    others = {name: value for name, value in what.items() if name not in ("fixed", "searched", "data")}
    searched = {f"space of {name}": values for name, values in what["searched"].items()}
    return {**others, **what["fixed"], **searched}


@contextlib.contextmanager
def alone(storage: Path) -> Iterator[None]:
    """Raise if another process uses this storage; the lock ends with the process."""
    check_place(storage)
    try:
        storage.parent.mkdir(parents=True, exist_ok=True)
        opened_lock = beside(storage, "lock").open("a")
    except (OSError, ValueError) as error:  # ValueError: a name that no file has
        why = getattr(error, "strerror", error)
        raise ConfigError(f"{storage} cannot be written: {why}. Choose another --storage.") from None
    with opened_lock as file:
        try:
            lock(file.fileno())
        except BlockingIOError:
            raise MurpError(
                f"another `murp tune` works on {storage}. Wait for it; for trials side by side give it --workers."
            ) from None
        except OSError:
            pass  # this system has no locks
        yield


def interrupted(study: Any) -> list[Any]:
    """The interrupted trials, in order. Within :func:`alone`, no other process works on them."""
    package = optuna()
    states = (package.trial.TrialState.RUNNING,)
    return list(study.get_trials(deepcopy=False, states=states))


def tidy(study: Any, storage: Path) -> None:
    """Keep the run of the best trial, and those that are not finished; remove the others, which are in the storage."""
    package = optuna()
    states = package.trial.TrialState
    trials = study.get_trials(deepcopy=False)
    done = [trial for trial in trials if trial.state == states.COMPLETE]
    best = max(done, key=lambda trial: trial.value, default=None)
    for trial in trials:
        if trial.state.is_finished() and (best is None or trial.number != best.number):
            path = run_of(storage, trial.number)
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
