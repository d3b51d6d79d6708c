"""The same weights through PyKEEN's interactions, as an independent judge of every model that it has one of.

PyKEEN has none of the hyperbolic models, of RotE, RefE and AttE, nor of MuRE with a matrix or a rotation:
``judges.py`` judges those, and all the others once more.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from scattered import scattered
from torch import Tensor

from murp.models import Model
from murp.models.model import Rows
from murp.testing import ENTITIES, RELATIONS

pykeen = pytest.importorskip("pykeen.nn.modules", reason="needs PyKEEN as a judge: pip install murp[judges]")

Judge = Callable[[Rows, Rows, Rows, Any], Tensor]
JUDGES: list[tuple[str, dict[str, Any], Judge]] = []


def judge(name: str, **settings: Any) -> Callable[[Judge], Judge]:
    """A judge of subjects' and relations' rows (B, …), objects' rows (B, …) and the model: scores (B)."""

    def named(function: Judge) -> Judge:
        JUDGES.append((name, settings, function))
        return function

    return named


@judge("transe")
@judge("transe", norm=2)
def transe(s: Rows, r: Rows, o: Rows, model: Any) -> Tensor:
    return model.gamma + pykeen.TransEInteraction(p=model.norm)(s["entity"], r["relation"], o["entity"])


@judge("stranse")
@judge("stranse", norm=2)
def stranse(s: Rows, r: Rows, o: Rows, model: Any) -> Tensor:
    """PyKEEN's structured embedding, |R_h h - R_t t|, is STransE with one more coordinate.

    That is 1 for every entity: in R_h the translation is its column, and it takes itself away.
    """
    ones = s["entity"].new_ones(len(s["entity"]), 1)
    matrices = []
    for name, column in (("subject_matrix", r["relation"]), ("object_matrix", torch.zeros_like(r["relation"]))):
        larger = torch.nn.functional.pad(r[name], (0, 1, 0, 1))
        larger[:, :-1, -1] = column
        larger[:, -1, -1] = 1
        matrices.append(larger)
    one, other = (torch.cat([rows["entity"], ones], -1) for rows in (s, o))
    return model.gamma + pykeen.SEInteraction(p=model.norm)(one, tuple(matrices), other)


@judge("ftranse")
def ftranse(s: Rows, r: Rows, o: Rows, model: Any) -> Tensor:
    return pykeen.TransFInteraction()(s["entity"], r["relation"], o["entity"])


@judge("distmult")
def distmult(s: Rows, r: Rows, o: Rows, model: Any) -> Tensor:
    return pykeen.DistMultInteraction()(s["entity"], r["relation"], o["entity"])


def complexes(x: Tensor) -> Tensor:
    """The first half of our rows are the real parts, the second the imaginary ones."""
    return torch.complex(*x.chunk(2, -1))


@judge("complex")
def complex_(s: Rows, r: Rows, o: Rows, model: Any) -> Tensor:
    return pykeen.ComplExInteraction()(*(complexes(x) for x in (s["entity"], r["relation"], o["entity"])))


@judge("rescal")
def rescal(s: Rows, r: Rows, o: Rows, model: Any) -> Tensor:
    """PyKEEN's matrix stands between head and tail: ours, transposed."""
    return pykeen.RESCALInteraction()(s["entity"], r["matrix"].transpose(1, 2), o["entity"])


@judge("rotate")
def rotate(s: Rows, r: Rows, o: Rows, model: Any) -> Tensor:
    """PyKEEN takes the L2 norm over coordinates where the paper adds their moduli: so it is asked for one at a time."""
    turn = torch.polar(torch.ones_like(r["phase"]), torch.pi * r["phase"])
    one, other = complexes(s["entity"]), complexes(o["entity"])
    return model.gamma + pykeen.RotatEInteraction()(*(x.unsqueeze(-1) for x in (one, turn, other))).sum(-1)


def normalised(layer: Any, name: str, model: Model) -> None:
    """Our weight, offset and running figures in the place of a layer's."""
    weight, offset, mean, variance = (
        model.parameters[f"{name}_{what}"][0] for what in ("weight", "offset", "mean", "variance")
    )
    layer.load_state_dict(
        {"weight": weight, "bias": offset, "running_mean": mean, "running_var": variance}, strict=False
    )


@judge("tucker")
@judge("tucker", relation_dim=5)
def tucker(s: Rows, r: Rows, o: Rows, model: Any) -> Tensor:
    core = model.parameters["core"][0]  # (relation, object, subject); PyKEEN's is (subject, relation, object)
    theirs = pykeen.TuckERInteraction(embedding_dim=model.dim, relation_dim=len(core)).double().eval()
    theirs.core_tensor.data = core.permute(2, 0, 1).contiguous()
    normalised(theirs.head_batch_norm, "subject_norm", model)
    normalised(theirs.head_relation_batch_norm, "query_norm", model)
    return theirs(s["entity"], r["relation"], o["entity"])


@judge("conve", dim=12)
def conve(s: Rows, r: Rows, o: Rows, model: Any) -> Tensor:
    theirs = pykeen.ConvEInteraction(
        embedding_dim=model.dim, embedding_height=model.height, embedding_width=model.width
    )
    theirs.double().eval()
    picture, line = theirs.hr2d, theirs.hr1d
    own = {name: values[0] for name, values in model.parameters.items() if name in ("filters", "filter_offset")}
    picture[2].weight.data = own["filters"].view_as(picture[2].weight)
    picture[2].bias.data = own["filter_offset"]
    line[0].weight.data = model.parameters["weight"][0].T.contiguous()
    line[0].bias.data = model.parameters["offset"][0]
    for layer, name in ((picture[0], "input_norm"), (picture[3], "picture_norm"), (line[2], "query_norm")):
        normalised(layer, name, model)
    return theirs(s["entity"], r["relation"], (o["entity"], o["object_bias"]))


@judge("mure")
def mure(s: Rows, r: Rows, o: Rows, model: Any) -> Tensor:
    """PyKEEN adds the translation to the head, with the other sign."""
    theirs = pykeen.MuREInteraction(p=2, power_norm=True)
    one, other = (s["entity"], s["subject_bias"]), (o["entity"], o["object_bias"])
    return theirs(one, (-r["translation"], r["subject_stretch"]), other)


@pytest.mark.parametrize(("name", "settings", "theirs"), JUDGES, ids=lambda one: getattr(one, "__name__", str(one)))
@torch.no_grad()
def test_pykeen_finds_the_same_scores(name: str, settings: dict[str, Any], theirs: Judge, tmp_path: Path) -> None:
    model = scattered(name, settings, tmp_path)
    draw = torch.Generator().manual_seed(5)
    s, r, o = (torch.randint(high, (200,), generator=draw) for high in (ENTITIES, RELATIONS, ENTITIES))
    verdict = theirs(model.rows("subject", s), model.rows("relation", r), model.rows("object", o), model)
    torch.testing.assert_close(model.score(s, r, o), verdict, rtol=1e-12, atol=1e-12)
