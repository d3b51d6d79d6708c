"""Parts that can be chosen by name, one line each. A class is imported when it is chosen.

Your own model, objective, negatives, optimizer or regularizer needs no line here: choose it by the module and name of
its class, ``--model my_package.my_module:MyModel``, or by the name of an entry point that a package declares:

    [project.entry-points."murp.models"]
    mine = "my_package.my_module:MyModel"

The groups are murp.models, murp.objectives, murp.corruptions (negatives), murp.optimizers and murp.regularizers: the
name of the setting, and an s.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from murp.errors import ConfigError, MurpError, first_line
from murp.settings import Part, Setting, current

MODELS = {
    "murp": "murp.models.multirelational:MuRP",
    "mure": "murp.models.multirelational:MuRE",
    "transe": "murp.models.transe:TransE",
    "stranse": "murp.models.stranse:STransE",
    "ftranse": "murp.models.ftranse:FTransE",
    "riemannian-transe": "murp.models.riemannian_transe:RiemannianTransE",
    "distmult": "murp.models.distmult:DistMult",
    "complex": "murp.models.complex:ComplEx",
    "rescal": "murp.models.rescal:RESCAL",
    "rotate": "murp.models.rotate:RotatE",
    "tucker": "murp.models.tucker:TuckER",
    "conve": "murp.models.conve:ConvE",
    "rote": "murp.models.rotations:RotE",
    "refe": "murp.models.rotations:RefE",
    "atte": "murp.models.rotations:AttE",
    "roth": "murp.models.hyperbolic_rotations:RotH",
    "refh": "murp.models.hyperbolic_rotations:RefH",
    "atth": "murp.models.hyperbolic_rotations:AttH",
    "roth-stretch": "murp.models.hyperbolic_rotations:RotHStretch",
    "mure-rotation": "murp.models.stretched_rotations:MuRERotation",
    "murp-rotation": "murp.models.stretched_rotations:MuRPRotation",
    "mure-matrix": "murp.models.matrices:MuREMatrix",
    "murp-matrix": "murp.models.matrices:MuRPMatrix",
    "hybonet": "murp.models.hybonet:HyboNet",
    "mixed-curvature": "murp.models.mixed_curvature:MixedCurvature",
    "poincare": "murp.models.hierarchy:Poincare",
    "lorentz": "murp.models.hierarchy:Lorentz",
}
OBJECTIVES = {
    "bernoulli": "murp.objectives.bernoulli:Bernoulli",
    "self-adversarial": "murp.objectives.self_adversarial:SelfAdversarial",
    "softmax": "murp.objectives.softmax:Softmax",
    "margin": "murp.objectives.margin:Margin",
    "rank": "murp.objectives.rank:Rank",
    "one-vs-all": "murp.objectives.one_vs_all:OneVsAll",
    "k-vs-all": "murp.objectives.k_vs_all:KVsAll",
}
NEGATIVES = {
    "uniform": "murp.negatives.uniform:Uniform",
    "with-head": "murp.negatives.with_head:WithHead",
    "both-sides": "murp.negatives.both_sides:BothSides",
    "shared": "murp.negatives.shared:Shared",
    "local": "murp.negatives.local:Local",
    "by-relation": "murp.negatives.by_relation:ByRelation",
    "checked": "murp.negatives.checked:Checked",
    "unrelated": "murp.negatives.unrelated:Unrelated",
    "relatives": "murp.negatives.unrelated:Relatives",
}
OPTIMIZERS = {
    "sgd": "murp.optimizers.sgd:SGD",
    "adagrad": "murp.optimizers.adagrad:Adagrad",
    "row-adagrad": "murp.optimizers.row_adagrad:RowAdagrad",
    "adam": "murp.optimizers.adam:Adam",
}
REGULARIZERS = {
    "none": "murp.regularizers.none:Nothing",
    "l2": "murp.regularizers.l2:L2",
    "n3": "murp.regularizers.n3:N3",
    "dura": "murp.regularizers.dura:DURA",
    "relation-prediction": "murp.regularizers.relation_prediction:RelationPrediction",
}
KINDS = {
    "model": MODELS,
    "objective": OBJECTIVES,
    "corruption": NEGATIVES,
    "optimizer": OPTIMIZERS,
    "regularizer": REGULARIZERS,
}
BASES = {
    "model": "murp.models.model:Model",
    "objective": "murp.objectives.objective:Objective",
    "corruption": "murp.negatives.negatives:Negatives",
    "optimizer": "murp.optimizers.optimizer:Optimizer",
    "regularizer": "murp.regularizers.regularizer:Regularizer",
}
GROUPS = {kind: f"murp.{kind}s" for kind in KINDS}


def names(kind: str) -> list[str]:
    """All names of a kind, including those of other packages."""
    return [*KINDS[kind], *(one.name for one in _of_others(kind))]


def find(kind: str, name: str) -> type[Any]:
    """The class of a kind called ``name`` (now or formerly), or given as ``package.module:Class``."""
    name = current(kind, name)
    place = KINDS[kind].get(name) or _entry_point(kind, name) or (name if ":" in name else None)
    if place is None:
        known = names(kind)
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"Choose one of {', '.join(known)}"
        own = "" if close else f", or name a class of your own, {kind} = package.module:Class."
        raise ConfigError(f"{kind} {name!r} is not known. {hint}{own}", kind)
    return _imported(kind, place)


def models_that(can: Callable[[Any], bool]) -> str:
    """The names of this package's models for which ``can`` is true, for error messages."""
    return ", ".join(name for name in MODELS if can(find("model", name))) or "none of this package"


def whose(setting: str, chosen: Mapping[str, Sequence[str]], shown: str) -> str:
    """A sentence on which parts have a setting that none of the ``chosen`` ones has; or nothing.

    ``chosen`` has the names of each kind; ``shown`` is what the user calls the setting. The user may have named none
    but the model: then the sentence says that the model has others by default.
    """
    for kind in KINDS:
        having = [one for one in names(kind) if setting in _settings_of(kind, one)]
        if having and kind in chosen:
            return f"{shown} is a setting of {kind} {', '.join(having)}, and not of {_named(kind, chosen)}."
        if having:
            draw, others = objectives_that_draw(), _named("objective", chosen)
            return f"{shown} is a setting of objectives that draw false triples: {draw}; not of {others}."
    return ""


def meant(misspelt: str, known: Iterable[str], chosen: Mapping[str, Sequence[str]], shown: Callable[[str], str]) -> str:
    """The closest setting, and on which parts have it, as :func:`whose` says; nothing if a ``known`` one is closer."""
    known = list(known)
    close = difflib.get_close_matches(misspelt, [*known, *sorted(all_settings().difference(known))], n=1)
    if not close or close[0] in known:
        return ""
    return f"Did you mean {shown(close[0])}? {whose(close[0], chosen, shown(close[0]))}"


def objectives_that_draw() -> str:
    """Those with false triples, in words; an objective of another package that cannot be imported is left out."""
    found = []
    for name in names("objective"):
        with suppress(ConfigError):
            if find("objective", name).sampled:
                found.append(name)
    return ", ".join(found)


def _named(kind: str, chosen: Mapping[str, Sequence[str]]) -> str:
    """The chosen parts of a kind, each with the models that have it by default."""
    words = []
    for name in chosen[kind]:
        models = [model for model in chosen["model"] if find("model", model).usual.get(kind) == name]
        words.append(f"{name} (the default of {', '.join(models)})" if models else name)
    return " or ".join(words)


def all_settings() -> set[str]:
    """The names of the settings of every part, whatever is chosen."""
    return {setting for kind in KINDS for name in names(kind) for setting in _settings_of(kind, name)}


def _settings_of(kind: str, name: str) -> Mapping[str, Setting]:
    """Those of a part; none where it is another package's and cannot be imported."""
    try:
        found: Mapping[str, Setting] = find(kind, name).settings
    except MurpError:
        return {}
    return found


def _entry_point(kind: str, name: str) -> str | None:
    return next((one.value for one in _of_others(kind) if one.name == name), None)


def _of_others(kind: str) -> importlib.metadata.EntryPoints:
    """What other packages add. They are looked through once, and again when a folder of Python's path changes."""
    return _entry_points(GROUPS[kind], tuple((folder, _changed(folder)) for folder in sys.path))


@lru_cache(maxsize=len(KINDS))
def _entry_points(group: str, path: tuple[tuple[str, int | None], ...]) -> importlib.metadata.EntryPoints:
    return importlib.metadata.entry_points(group=group)


def _changed(folder: str) -> int | None:
    """When an entry was last added to a folder or removed; None where there is no folder."""
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return None


def _imported(kind: str, place: str) -> type[Any]:
    module, _, wanted = place.partition(":")
    try:
        imported = importlib.import_module(module)
        close = [] if hasattr(imported, wanted) else difflib.get_close_matches(wanted, dir(imported), n=1)
        found = None if close else getattr(imported, wanted)
    except Exception as error:
        raise ConfigError(f"{kind} {place} cannot be imported: {_why_not(module, error)}", kind) from error
    if close:
        raise ConfigError(f"{kind} {place}: {module} has no {wanted}. Did you mean {module}:{close[0]}?", kind)
    module, _, base = BASES[kind].partition(":")
    derived_from: type[Part] = getattr(importlib.import_module(module), base)
    if not (isinstance(found, type) and issubclass(found, derived_from)):
        why = f"is no class of that kind: derive it from {module}.{base} (see the guide)."
        raise ConfigError(f"{kind} {place} {why}", kind)
    if missing := sorted(found.__abstractmethods__):
        why = f"does not define {', '.join(missing)}: write it as its base class explains."
        raise ConfigError(f"{kind} {place} {why}", kind)
    return found


def _why_not(module: str, error: Exception) -> str:
    """Why a module, or a name in it, cannot be imported, and what to do."""
    missing = error.name if isinstance(error, ModuleNotFoundError) and error.name else None
    at = None if missing and f"{module}.".startswith(f"{missing}.") else _line_of_its_author(error)
    if at is None:
        first = f"{first_line(error)}. Name a class as package.module:Class"
        return f"{first}, and put its folder on Python's path: `PYTHONPATH=. murp …`."
    file, number = at
    what = str(error.msg) if isinstance(error, SyntaxError) else first_line(error).removesuffix(".")
    todo = f"Install {missing}, or put its folder on Python's path." if missing else "Correct this line."
    return f"{file}, line {number}: {type(error).__name__}: {what}. {todo}"


def _line_of_its_author(error: Exception) -> tuple[str, int] | None:
    """The file and the line that raised an error in an import: the last one outside this package and, if there is one,
    outside Python's libraries. None if no line of the module was reached."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return error.filename, error.lineno
    ours = ("<frozen importlib", importlib.__file__, os.path.join(os.path.dirname(__file__), ""))
    libraries = tuple(os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "purelib", "platlib"))
    passed = [(frame.f_code.co_filename, number) for frame, number in traceback.walk_tb(error.__traceback__)]
    theirs = [line for line in passed if not line[0].startswith(ours)]
    return next(
        (line for line in reversed(theirs) if not line[0].startswith(libraries)), theirs[-1] if theirs else None
    )
