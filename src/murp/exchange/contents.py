"""What an export holds, whatever its format: tables, names, and a description that says what they are."""

from __future__ import annotations

import contextlib
import inspect
import json
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from safetensors import SafetensorError
from torch import Tensor

import murp
from murp.config import Config
from murp.errors import ConfigError, DataError
from murp.exchange.coordinates import IN_WORDS, Coordinates, converted, in_words, own_coordinates
from murp.files import fields
from murp.graph import Vocabulary
from murp.models import Model, MultiRelational
from murp.runs import Run, folder

FORMAT, VERSION = "murp export", 1


@dataclass(frozen=True, eq=False)
class Contents:
    """Tables by name, rows in the order of the vocabularies; relation tables have 2R rows, reciprocals second."""

    about: dict[str, Any]
    tables: dict[str, Tensor]
    entities: Vocabulary
    relations: Vocabulary

    def of(self, kind: str) -> dict[str, Tensor]:
        """The tables of "entity" or of "relation"."""
        return {name: values for name, values in self.tables.items() if self.about["tables"][name]["of"] == kind}

    def about_json(self) -> str:
        """The description as files keep it."""
        return json.dumps(self.about, indent=2, ensure_ascii=False) + "\n"


def contents_of(run: Run, coordinates: Coordinates | None) -> Contents:
    """Everything of a run but its graph and its history."""
    tables = converted(run.model, coordinates)
    return Contents(
        _describe(run, coordinates or own_coordinates(run.model), tables),
        tables,
        run.graph.entities,
        run.graph.relations,
    )


def _describe(run: Run, coordinates: str, tables: dict[str, Tensor]) -> dict[str, Any]:
    model = run.model
    settings = run.config.to_dict()
    # Where the data lay on the machine that trained is no one else's business.
    settings |= {"data": run.graph.name, "data_dir": ""}
    return {
        "format": FORMAT,
        "version": VERSION,
        "murp": murp.__version__,
        "model": run.config.model,
        "dim": model.dim,
        "geometry": model.geometry.name,
        "c": getattr(model.geometry, "c", None),
        "curvature": model.geometry.curvature,
        "coordinates": coordinates,
        "coordinates_in_words": in_words(coordinates),
        "score": score_formula(model),
        "rows": "entity tables: a row an entity; relation tables: row r is relation r of R, row r + R its reciprocal, "
        "with which heads are predicted: φ(o, r + R, s)",
        "tables": {
            table.name: {
                "of": table.of,
                "shape": list(tables[table.name].shape),
                "space": coordinates if table.geometry == model.geometry else table.geometry.name,
            }
            for table in model.tables
        },
        "graph": {"name": run.graph.name, "entities": run.graph.num_entities, "relations": run.graph.num_relations},
        "config": settings,
        "state": run.state,
        "environment": folder.training_environment(run.path),
    }


def score_formula(model: Model) -> str:
    """φ in words of mathematics: of MuRP and MuRE from their parts, of other models what they say of themselves."""
    if not isinstance(model, MultiRelational):
        said = inspect.cleandoc(type(model).__doc__ or type(model).__name__)
        return " ".join(said.split("\n\n")[0].split()).removesuffix(".")
    flat, parts = model.geometry.is_flat, model.parts
    times, plus = (" ", " + ") if flat else (" ⊗ ", " ⊕ ")

    def moved(point: str, stretch: bool, name: str, translate: bool) -> str:
        return (f"{name}{times}" if stretch else "") + point + (f"{plus}r" if translate else "")

    s = moved("e_s", parts.stretch_subject, "R" if not parts.stretch_object else "R_s", parts.translate_subject)
    o = moved("e_o", parts.stretch_object, "R" if not parts.stretch_subject else "R_o", parts.translate_object)
    biases = {
        "both": " + b_s + b_o",
        "head": " + b_s",
        "tail": " + b_o",
        "norm": " + |e_s|² + |e_o|²",
        "transformed-norm": f" + |{s}|² + |{o}|²",
    }
    where = (
        "Euclid's distance" if flat else "the distance of the Poincaré ball, ⊕ Möbius addition, R ⊗ x = exp₀(R log₀(x))"
    )
    names = (
        "e: entity, R: subject_stretch (R_o: object_stretch), diagonal, r: translation, b: subject_bias, object_bias"
    )
    return f"φ(s, r, o) = -d({s}, {o})²{biases[model.bias]}; probability σ(φ); d: {where}; {names}"


@contextlib.contextmanager
def telling_damage(path: Path) -> Iterator[None]:
    """Whatever a library or our own code objects to in a file that is not as it was written, as a DataError."""
    try:
        yield
    except (OSError, EOFError, LookupError, MemoryError, RuntimeError, TypeError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}. Export it again.") from error
    except (SafetensorError, pa.ArrowException, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}. Export it again.") from error


def checked(path: Path, about: Any) -> dict[str, Any]:
    """``about`` as read from ``path``, if it describes an export of this version."""
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise DataError(f"{path} was not written by `murp export`: it has no description of itself.")
    if about.get("version") != VERSION:
        raise DataError(
            f"{path} was written by murp {about.get('murp')} in version {about.get('version')} of the export; "
            f"murp {murp.__version__} reads version {VERSION}. Export it again with this version."
        )
    fields(about, {"config": dict, "state": dict, "tables": dict, "coordinates": str, "graph": dict})
    fields(about["state"], {"epoch": int})
    if about.get("environment") is not None:  # the first exports do not say
        fields(about["environment"], folder.KNOWN)
    for table in about["tables"].values():
        fields(table, {"of": str, "shape": list})
    if about["coordinates"] not in (*IN_WORDS, about.get("geometry")):
        raise DataError(f"{path} is damaged: unknown coordinates {about['coordinates']!r}. Export it again.")
    return about


def config_of(path: Path, about: dict[str, Any]) -> Config:
    """The settings an export describes."""
    try:
        return Config.from_mapping(about["config"], str(path))
    except ConfigError as error:
        raise DataError(
            f"{path} was written by murp {about.get('murp')} and cannot be read by murp {murp.__version__}: {error}"
        ) from error
