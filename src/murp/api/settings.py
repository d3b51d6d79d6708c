"""The settings of a run as keyword arguments. Written by ``python tools/signatures.py``: do not edit.

``Settings`` are what :func:`murp.train` takes, ``Grid`` what :func:`murp.sweep` takes: one value each, or several.
``EXPLAINED`` has the default of the usual run (``...`` where it has no such setting) and the explanation of each.
A part of your own may have further settings; they are taken too.
"""

# fmt: off
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict


class Settings(TypedDict, total=False):
    """One value for each."""

    data_dir: str
    """where to look for named datasets before MURP_DATA and the cache; empty: nowhere else"""
    split_seed: int
    """draws valid and test where the data is one file"""
    columns: str
    """head=…,relation=…,tail=…: columns of the data by title or number from 1; empty: by known titles"""
    no_header: bool
    """the first row of the data is a fact, whatever it looks like"""
    model: str
    """the model, by name or package.module:Class of your own"""
    objective: str
    """what training minimises"""
    corruption: str
    """how false triples are made of true ones, for objectives that need some"""
    optimizer: str
    """how parameters follow the gradient"""
    regularizer: str
    """what keeps parameters small"""
    epochs: int
    """passes over the training triples and their reciprocals; the paper: 500"""
    init_from: str
    """run folder whose weights training starts from, where names are the same; empty: fresh initial values"""
    batch_size: int
    """positive triples a step"""
    slices: int
    """parts that a batch is cut into and ranks share out (torchrun); as many of them give the same bits on any number of ranks, and on one process; 0: as many as there are ranks, and on one process none"""
    seed: int
    """same seed, same machine, same number of threads: same bits on the CPU"""
    device: Literal["auto", "cpu", "cuda"]
    """where to train: auto takes the GPU if there is one"""
    dtype: Literal["float32", "float64"]
    """precision of the parameters"""
    engine: Literal["auto", "torch", "numba", "triton"]
    """how a step is computed: auto takes the fastest that can train the model"""
    tables: Literal["device", "host"]
    """where the entities' points lie: on the device that computes, or in host memory, which the engine triton reads and writes over the bus: for tables larger than the GPU"""
    compile_after: float
    """seconds of training by the engine torch on a GPU after which its steps are compiled, which takes about as long and makes them several times as fast; 0: at once"""
    lr_schedule: Literal["constant", "linear", "cosine", "plateau"]
    """learning rate by epoch: constant, falling to 0 by a line or a cosine, or divided by 10 whenever three validations bring no better MRR (plateau)"""
    warmup: int
    """epochs in which the learning rate rises to its value"""
    validate_every: int
    """epochs between validations (filtered MRR on valid); 0: never"""
    patience: int
    """stop after so many validations without a better MRR; 0: never stop early"""
    save_every: float
    """seconds between checkpoints while training; one is always written at the end"""
    tensorboard: bool
    """also write TensorBoard event files into the run folder"""
    dim: int
    """dimension d of the embedding"""
    initial_scale: float
    """standard deviation of the initial entities and translations about the origin"""
    query_dropout: float
    """share of a query's coordinates that a training step sets to 0 (dropout)"""
    entity_dropout: float
    """share of an entity's coordinates that a training step sets to 0 (dropout)"""
    transformation: Literal["published", "translation-only", "stretch-only", "stretch-both", "swapped"]
    """how a relation moves subject and object (the paper's table 2) (of murp, mure)"""
    bias: Literal["both", "subject", "object", "norm", "transformed-norm"]
    """what is added to minus the squared distance (the paper's table 2) (of murp, mure)"""
    curvature: float
    """curvature c of the ball, whose radius is 1/√c (of murp, riemannian-transe, roth, refh, atth, roth-stretch, murp-rotation, murp-matrix, mixed-curvature)"""
    norm: int
    """which norm measures the distance, L1 or L2 (of transe, stranse)"""
    gamma: float
    """the score of a perfect match: φ = γ - distance (of transe, stranse, riemannian-transe, rotate)"""
    relation_dim: int
    """numbers of a relation; 0: as many as of an entity (of tucker)"""
    input_dropout: float
    """share of the subject's numbers that a step of training drops (of tucker, conve, hybonet)"""
    matrix_dropout: float
    """share of the relation's matrix that a step of training drops (of tucker)"""
    channels: int
    """filters of the convolution (of conve)"""
    picture_dropout: float
    """share of the filters that a step of training drops (of conve)"""
    learn_curvature: Literal["no", "all", "relation"]
    """whether c is learned: not at all, once for all, or for each relation (of roth, refh, atth, roth-stretch, mixed-curvature)"""
    spherical_dim: int
    """numbers of the part on the sphere; 0: a third of dim (of mixed-curvature)"""
    flat_dim: int
    """numbers of the part in Euclidean space; 0: a third of dim (of mixed-curvature)"""
    temperature: float
    """α: how much more a false triple counts the higher it is scored; 0: all count the same (of self-adversarial)"""
    margin: float
    """γ: how far a true triple is to be scored above a false one (of margin)"""
    label_loss: Literal["cross-entropy", "bernoulli"]
    """whether the entities are a choice of one (cross-entropy) or a coin toss each (bernoulli) (of one-vs-all, k-vs-all)"""
    label_smoothing: float
    """ε: share of the label that is spread over all entities alike (of one-vs-all, k-vs-all)"""
    negatives: int
    """false triples for each true one (of uniform, with-subject, both-sides, shared, by-relation, checked, unrelated, relatives)"""
    lr: float
    """learning rate; the paper, with SGD: 50 for WN18RR and NELL, 10 for FB15k-237; small, dense graphs need less (of sgd, adagrad, row-adagrad, adam)"""
    clip: float
    """longest gradient of a row, in the metric of its space; a longer one is shortened to it; 0: any length (of sgd, adagrad, row-adagrad, adam)"""
    eps: float
    """added to the root of the summed squares, which it is divided by (of adagrad, row-adagrad, adam)"""
    beta1: float
    """how much of the mean gradient a step of Adam keeps (of adam)"""
    beta2: float
    """how much of the mean squared gradient a step of Adam keeps (of adam)"""
    regularizer_weight: float
    """λ: how much the regularizer counts beside the loss (of l2, n3, dura, relation-prediction)"""
    regularize_relations: bool
    """whether the relations' parameters count as well (of l2, n3)"""
    dura_balance: float
    """ρ: entities' own lengths count ρ times, those after the relation 1/ρ times (of dura)"""
    recipe: str
    """settings that go together, by name (murp.recipes.RECIPES)"""


class Grid(TypedDict, total=False):
    """One value for each, or several to try."""

    data_dir: str | Sequence[str]
    split_seed: int | Sequence[int]
    columns: str | Sequence[str]
    no_header: bool | Sequence[bool]
    model: str | Sequence[str]
    objective: str | Sequence[str]
    corruption: str | Sequence[str]
    optimizer: str | Sequence[str]
    regularizer: str | Sequence[str]
    epochs: int | Sequence[int]
    init_from: str | Sequence[str]
    batch_size: int | Sequence[int]
    slices: int | Sequence[int]
    seed: int | Sequence[int]
    device: Literal["auto", "cpu", "cuda"] | Sequence[Literal["auto", "cpu", "cuda"]]
    dtype: Literal["float32", "float64"] | Sequence[Literal["float32", "float64"]]
    engine: Literal["auto", "torch", "numba", "triton"] | Sequence[Literal["auto", "torch", "numba", "triton"]]
    tables: Literal["device", "host"] | Sequence[Literal["device", "host"]]
    compile_after: float | Sequence[float]
    lr_schedule: Literal["constant", "linear", "cosine", "plateau"] | Sequence[Literal["constant", "linear", "cosine", "plateau"]]
    warmup: int | Sequence[int]
    validate_every: int | Sequence[int]
    patience: int | Sequence[int]
    save_every: float | Sequence[float]
    tensorboard: bool | Sequence[bool]
    dim: int | Sequence[int]
    initial_scale: float | Sequence[float]
    query_dropout: float | Sequence[float]
    entity_dropout: float | Sequence[float]
    transformation: Literal["published", "translation-only", "stretch-only", "stretch-both", "swapped"] | Sequence[Literal["published", "translation-only", "stretch-only", "stretch-both", "swapped"]]
    bias: Literal["both", "subject", "object", "norm", "transformed-norm"] | Sequence[Literal["both", "subject", "object", "norm", "transformed-norm"]]
    curvature: float | Sequence[float]
    norm: int | Sequence[int]
    gamma: float | Sequence[float]
    relation_dim: int | Sequence[int]
    input_dropout: float | Sequence[float]
    matrix_dropout: float | Sequence[float]
    channels: int | Sequence[int]
    picture_dropout: float | Sequence[float]
    learn_curvature: Literal["no", "all", "relation"] | Sequence[Literal["no", "all", "relation"]]
    spherical_dim: int | Sequence[int]
    flat_dim: int | Sequence[int]
    temperature: float | Sequence[float]
    margin: float | Sequence[float]
    label_loss: Literal["cross-entropy", "bernoulli"] | Sequence[Literal["cross-entropy", "bernoulli"]]
    label_smoothing: float | Sequence[float]
    negatives: int | Sequence[int]
    lr: float | Sequence[float]
    clip: float | Sequence[float]
    eps: float | Sequence[float]
    beta1: float | Sequence[float]
    beta2: float | Sequence[float]
    regularizer_weight: float | Sequence[float]
    regularize_relations: bool | Sequence[bool]
    dura_balance: float | Sequence[float]
    recipe: str | Sequence[str]


EXPLAINED: dict[str, tuple[Any, str]] = {
    "data_dir": ("", "where to look for named datasets before MURP_DATA and the cache; empty: nowhere else"),
    "split_seed": (0, "draws valid and test where the data is one file"),
    "columns": ("", "head=…,relation=…,tail=…: columns of the data by title or number from 1; empty: by known titles"),
    "no_header": (False, "the first row of the data is a fact, whatever it looks like"),
    "model": ("murp", "the model, by name or package.module:Class of your own"),
    "objective": ("bernoulli", "what training minimises"),
    "corruption": ("uniform", "how false triples are made of true ones, for objectives that need some"),
    "optimizer": ("sgd", "how parameters follow the gradient"),
    "regularizer": ("none", "what keeps parameters small"),
    "epochs": (100, "passes over the training triples and their reciprocals; the paper: 500"),
    "init_from": ("", "run folder whose weights training starts from, where names are the same; empty: fresh initial values"),
    "batch_size": (128, "positive triples a step"),
    "slices": (0, "parts that a batch is cut into and ranks share out (torchrun); as many of them give the same bits on any number of ranks, and on one process; 0: as many as there are ranks, and on one process none"),
    "seed": (0, "same seed, same machine, same number of threads: same bits on the CPU"),
    "device": ("auto", "where to train: auto takes the GPU if there is one"),
    "dtype": ("float32", "precision of the parameters"),
    "engine": ("auto", "how a step is computed: auto takes the fastest that can train the model"),
    "tables": ("device", "where the entities' points lie: on the device that computes, or in host memory, which the engine triton reads and writes over the bus: for tables larger than the GPU"),
    "compile_after": (20.0, "seconds of training by the engine torch on a GPU after which its steps are compiled, which takes about as long and makes them several times as fast; 0: at once"),
    "lr_schedule": ("constant", "learning rate by epoch: constant, falling to 0 by a line or a cosine, or divided by 10 whenever three validations bring no better MRR (plateau)"),
    "warmup": (0, "epochs in which the learning rate rises to its value"),
    "validate_every": (10, "epochs between validations (filtered MRR on valid); 0: never"),
    "patience": (0, "stop after so many validations without a better MRR; 0: never stop early"),
    "save_every": (60.0, "seconds between checkpoints while training; one is always written at the end"),
    "tensorboard": (False, "also write TensorBoard event files into the run folder"),
    "dim": (40, "dimension d of the embedding"),
    "initial_scale": (0.001, "standard deviation of the initial entities and translations about the origin"),
    "query_dropout": (0.0, "share of a query's coordinates that a training step sets to 0 (dropout)"),
    "entity_dropout": (0.0, "share of an entity's coordinates that a training step sets to 0 (dropout)"),
    "transformation": ("published", "how a relation moves subject and object (the paper's table 2) (of murp, mure)"),
    "bias": ("both", "what is added to minus the squared distance (the paper's table 2) (of murp, mure)"),
    "curvature": (1.0, "curvature c of the ball, whose radius is 1/√c (of murp, riemannian-transe, roth, refh, atth, roth-stretch, murp-rotation, murp-matrix, mixed-curvature)"),
    "norm": (..., "which norm measures the distance, L1 or L2 (of transe, stranse)"),
    "gamma": (..., "the score of a perfect match: φ = γ - distance (of transe, stranse, riemannian-transe, rotate)"),
    "relation_dim": (..., "numbers of a relation; 0: as many as of an entity (of tucker)"),
    "input_dropout": (..., "share of the subject's numbers that a step of training drops (of tucker, conve, hybonet)"),
    "matrix_dropout": (..., "share of the relation's matrix that a step of training drops (of tucker)"),
    "channels": (..., "filters of the convolution (of conve)"),
    "picture_dropout": (..., "share of the filters that a step of training drops (of conve)"),
    "learn_curvature": (..., "whether c is learned: not at all, once for all, or for each relation (of roth, refh, atth, roth-stretch, mixed-curvature)"),
    "spherical_dim": (..., "numbers of the part on the sphere; 0: a third of dim (of mixed-curvature)"),
    "flat_dim": (..., "numbers of the part in Euclidean space; 0: a third of dim (of mixed-curvature)"),
    "temperature": (..., "α: how much more a false triple counts the higher it is scored; 0: all count the same (of self-adversarial)"),
    "margin": (..., "γ: how far a true triple is to be scored above a false one (of margin)"),
    "label_loss": (..., "whether the entities are a choice of one (cross-entropy) or a coin toss each (bernoulli) (of one-vs-all, k-vs-all)"),
    "label_smoothing": (..., "ε: share of the label that is spread over all entities alike (of one-vs-all, k-vs-all)"),
    "negatives": (50, "false triples for each true one (of uniform, with-subject, both-sides, shared, by-relation, checked, unrelated, relatives)"),
    "lr": (50.0, "learning rate; the paper, with SGD: 50 for WN18RR and NELL, 10 for FB15k-237; small, dense graphs need less (of sgd, adagrad, row-adagrad, adam)"),
    "clip": (0.0, "longest gradient of a row, in the metric of its space; a longer one is shortened to it; 0: any length (of sgd, adagrad, row-adagrad, adam)"),
    "eps": (..., "added to the root of the summed squares, which it is divided by (of adagrad, row-adagrad, adam)"),
    "beta1": (..., "how much of the mean gradient a step of Adam keeps (of adam)"),
    "beta2": (..., "how much of the mean squared gradient a step of Adam keeps (of adam)"),
    "regularizer_weight": (..., "λ: how much the regularizer counts beside the loss (of l2, n3, dura, relation-prediction)"),
    "regularize_relations": (..., "whether the relations' parameters count as well (of l2, n3)"),
    "dura_balance": (..., "ρ: entities' own lengths count ρ times, those after the relation 1/ρ times (of dura)"),
    "recipe": (..., "settings that go together, by name (murp.recipes.RECIPES)"),
}
