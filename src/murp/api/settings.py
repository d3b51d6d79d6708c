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
    """folder to search for named datasets, before MURP_DATA and the cache; empty: none"""
    split_seed: int
    """seed that splits the data into train, valid and test if it is one file"""
    columns: str
    """head=…,relation=…,tail=…: columns of the data by title or number from 1; empty: by known titles"""
    no_header: bool
    """the first row of the data is a fact, even if it looks like a header"""
    model: str
    """name of the model, or package.module:Class of your own model"""
    objective: str
    """the loss that training minimises"""
    corruption: str
    """how negatives are drawn, for objectives that need them"""
    optimizer: str
    """how parameters are updated"""
    regularizer: str
    """what keeps parameters small"""
    epochs: int
    """passes over the training triples and their reciprocals; 500 in the paper"""
    init_from: str
    """run folder with initial weights for entities and relations of the same id; empty: new initial values"""
    batch_size: int
    """positive triples in a step"""
    slices: int
    """parts of a batch that are divided among the ranks (torchrun); the same number gives the same bits on any number of ranks and on one process; 0: one for each rank, and none on one process"""
    seed: int
    """random seed; the same seed, machine and number of threads give the same bits on the CPU"""
    device: Literal["auto", "cpu", "cuda"]
    """where to train; auto: on the GPU if there is one"""
    dtype: Literal["float32", "float64"]
    """precision of the parameters"""
    table_dtype: Literal["auto", "float32", "float16", "bfloat16"]
    """precision in which the entities' points are stored while training and in checkpoints; auto: as dtype; float16 and bfloat16 need half the memory of float32: steps still compute in dtype, and a row is rounded when it is written"""
    engine: Literal["auto", "torch", "numba", "triton"]
    """which code computes a step; auto: the fastest that can train the model"""
    tables: Literal["device", "host"]
    """where the entity table is: on the device that computes, or in host memory, for tables larger than the GPU's memory (engine triton)"""
    compile_after: float
    """with the engine torch on a GPU, steps are compiled after so many seconds of training; compiling takes about as long and makes steps several times faster; 0: at once"""
    lr_schedule: Literal["constant", "linear", "cosine", "plateau"]
    """learning rate by epoch: constant, falling to 0 (linear or cosine), or divided by 10 after three validations without a better MRR (plateau)"""
    warmup: int
    """number of epochs at the beginning in which the learning rate rises to its value"""
    validate_every: int
    """epochs between validations (filtered MRR on valid); 0: never"""
    validate_candidates: int
    """validate by protocol sampled with this many candidates for each question, drawn by the seed of the run: for graphs on which ranking all entities takes too long; 0: among all entities"""
    patience: int
    """stop after this many validations without a better MRR; 0: never stop early"""
    save_every: float
    """seconds between checkpoints while training; one is always written at the end"""
    tensorboard: bool
    """also write TensorBoard event files into the run folder"""
    dim: int
    """dimension d of the embedding"""
    initial_scale: float
    """standard deviation of the initial entities and translations"""
    query_dropout: float
    """dropout rate of a query's coordinates"""
    entity_dropout: float
    """dropout rate of an entity's coordinates"""
    transformation: Literal["published", "translation-only", "stretch-only", "stretch-both", "swapped"]
    """how a relation transforms head and tail (the paper's table 2) (of murp, mure)"""
    bias: Literal["both", "head", "tail", "norm", "transformed-norm"]
    """what is added to minus the squared distance (the paper's table 2) (of murp, mure)"""
    curvature: float
    """curvature c of the ball, whose radius is 1/√c (of murp, riemannian-transe, roth, refh, atth, roth-stretch, murp-rotation, murp-matrix, mixed-curvature)"""
    norm: int
    """which norm measures the distance, L1 or L2 (of transe, stranse)"""
    gamma: float
    """the score of a perfect match: φ = γ - distance (of transe, stranse, riemannian-transe, rotate)"""
    relation_dim: int
    """dimension of a relation; 0: the same as of an entity (of tucker)"""
    input_dropout: float
    """dropout rate of the head's coordinates (of tucker, conve, hybonet)"""
    matrix_dropout: float
    """dropout rate of the relation's matrix (of tucker)"""
    channels: int
    """filters of the convolution (of conve)"""
    picture_dropout: float
    """dropout rate of the feature maps (of conve)"""
    learn_curvature: Literal["no", "all", "relation"]
    """whether c is learned: no, one for all relations, or one for each relation (of roth, refh, atth, roth-stretch, mixed-curvature)"""
    spherical_dim: int
    """dimension of the part on the sphere; 0: a third of dim (of mixed-curvature)"""
    flat_dim: int
    """dimension of the part in Euclidean space; 0: a third of dim (of mixed-curvature)"""
    temperature: float
    """α: how much more weight negatives with high scores get; 0: all have the same weight (of self-adversarial)"""
    margin: float
    """γ: how far a true triple is to be scored above a false one (of margin)"""
    softness: float
    """τ: how far two scores have to be apart for their order to count fully (of rank)"""
    label_loss: Literal["cross-entropy", "bernoulli"]
    """softmax over all entities (cross-entropy), or a binary loss for each entity (bernoulli) (of one-vs-all, k-vs-all)"""
    label_smoothing: float
    """ε: share of the label that is spread evenly over all entities (of one-vs-all, k-vs-all)"""
    answer_weight: float
    """κ: the weight of a question is 1 + κ times its answer's share of the most frequent answer's facts (of one-vs-all, k-vs-all)"""
    negatives: int
    """false triples for each true one (of uniform, with-head, both-sides, shared, local, by-relation, checked, unrelated, relatives)"""
    entity_parts: int
    """parts of the entities, each for a part of the batch; a multiple of the number of ranks (of local)"""
    lr: float
    """learning rate; in the paper (SGD, objective bernoulli) 50 for WN18RR and NELL, 10 for FB15k-237; small, dense graphs and other objectives need less (of sgd, adagrad, row-adagrad, adam)"""
    clip: float
    """largest norm of a row's gradient, in the metric of its space; longer gradients are clipped to it; 0: no clipping (of sgd, adagrad, row-adagrad, adam)"""
    eps: float
    """added to the denominator, the root of the summed squares (of adagrad, row-adagrad, adam)"""
    beta1: float
    """decay of the mean gradient (of adam)"""
    beta2: float
    """decay of the mean squared gradient (of adam)"""
    regularizer_weight: float
    """λ: how much the regularizer counts beside the loss (of l2, n3, dura, relation-prediction)"""
    regularize_relations: bool
    """whether the relations' parameters are included (of l2, n3)"""
    dura_balance: float
    """ρ: norms of entities have weight ρ, norms of transformed entities 1/ρ (of dura)"""
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
    table_dtype: Literal["auto", "float32", "float16", "bfloat16"] | Sequence[Literal["auto", "float32", "float16", "bfloat16"]]
    engine: Literal["auto", "torch", "numba", "triton"] | Sequence[Literal["auto", "torch", "numba", "triton"]]
    tables: Literal["device", "host"] | Sequence[Literal["device", "host"]]
    compile_after: float | Sequence[float]
    lr_schedule: Literal["constant", "linear", "cosine", "plateau"] | Sequence[Literal["constant", "linear", "cosine", "plateau"]]
    warmup: int | Sequence[int]
    validate_every: int | Sequence[int]
    validate_candidates: int | Sequence[int]
    patience: int | Sequence[int]
    save_every: float | Sequence[float]
    tensorboard: bool | Sequence[bool]
    dim: int | Sequence[int]
    initial_scale: float | Sequence[float]
    query_dropout: float | Sequence[float]
    entity_dropout: float | Sequence[float]
    transformation: Literal["published", "translation-only", "stretch-only", "stretch-both", "swapped"] | Sequence[Literal["published", "translation-only", "stretch-only", "stretch-both", "swapped"]]
    bias: Literal["both", "head", "tail", "norm", "transformed-norm"] | Sequence[Literal["both", "head", "tail", "norm", "transformed-norm"]]
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
    softness: float | Sequence[float]
    label_loss: Literal["cross-entropy", "bernoulli"] | Sequence[Literal["cross-entropy", "bernoulli"]]
    label_smoothing: float | Sequence[float]
    answer_weight: float | Sequence[float]
    negatives: int | Sequence[int]
    entity_parts: int | Sequence[int]
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
    "data_dir": ("", "folder to search for named datasets, before MURP_DATA and the cache; empty: none"),
    "split_seed": (0, "seed that splits the data into train, valid and test if it is one file"),
    "columns": ("", "head=…,relation=…,tail=…: columns of the data by title or number from 1; empty: by known titles"),
    "no_header": (False, "the first row of the data is a fact, even if it looks like a header"),
    "model": ("murp", "name of the model, or package.module:Class of your own model"),
    "objective": ("bernoulli", "the loss that training minimises"),
    "corruption": ("uniform", "how negatives are drawn, for objectives that need them"),
    "optimizer": ("sgd", "how parameters are updated"),
    "regularizer": ("none", "what keeps parameters small"),
    "epochs": (100, "passes over the training triples and their reciprocals; 500 in the paper"),
    "init_from": ("", "run folder with initial weights for entities and relations of the same id; empty: new initial values"),
    "batch_size": (128, "positive triples in a step"),
    "slices": (0, "parts of a batch that are divided among the ranks (torchrun); the same number gives the same bits on any number of ranks and on one process; 0: one for each rank, and none on one process"),
    "seed": (0, "random seed; the same seed, machine and number of threads give the same bits on the CPU"),
    "device": ("auto", "where to train; auto: on the GPU if there is one"),
    "dtype": ("float32", "precision of the parameters"),
    "table_dtype": ("auto", "precision in which the entities' points are stored while training and in checkpoints; auto: as dtype; float16 and bfloat16 need half the memory of float32: steps still compute in dtype, and a row is rounded when it is written"),
    "engine": ("auto", "which code computes a step; auto: the fastest that can train the model"),
    "tables": ("device", "where the entity table is: on the device that computes, or in host memory, for tables larger than the GPU's memory (engine triton)"),
    "compile_after": (20.0, "with the engine torch on a GPU, steps are compiled after so many seconds of training; compiling takes about as long and makes steps several times faster; 0: at once"),
    "lr_schedule": ("constant", "learning rate by epoch: constant, falling to 0 (linear or cosine), or divided by 10 after three validations without a better MRR (plateau)"),
    "warmup": (0, "number of epochs at the beginning in which the learning rate rises to its value"),
    "validate_every": (10, "epochs between validations (filtered MRR on valid); 0: never"),
    "validate_candidates": (0, "validate by protocol sampled with this many candidates for each question, drawn by the seed of the run: for graphs on which ranking all entities takes too long; 0: among all entities"),
    "patience": (0, "stop after this many validations without a better MRR; 0: never stop early"),
    "save_every": (60.0, "seconds between checkpoints while training; one is always written at the end"),
    "tensorboard": (False, "also write TensorBoard event files into the run folder"),
    "dim": (40, "dimension d of the embedding"),
    "initial_scale": (0.001, "standard deviation of the initial entities and translations"),
    "query_dropout": (0.0, "dropout rate of a query's coordinates"),
    "entity_dropout": (0.0, "dropout rate of an entity's coordinates"),
    "transformation": ("published", "how a relation transforms head and tail (the paper's table 2) (of murp, mure)"),
    "bias": ("both", "what is added to minus the squared distance (the paper's table 2) (of murp, mure)"),
    "curvature": (1.0, "curvature c of the ball, whose radius is 1/√c (of murp, riemannian-transe, roth, refh, atth, roth-stretch, murp-rotation, murp-matrix, mixed-curvature)"),
    "norm": (..., "which norm measures the distance, L1 or L2 (of transe, stranse)"),
    "gamma": (..., "the score of a perfect match: φ = γ - distance (of transe, stranse, riemannian-transe, rotate)"),
    "relation_dim": (..., "dimension of a relation; 0: the same as of an entity (of tucker)"),
    "input_dropout": (..., "dropout rate of the head's coordinates (of tucker, conve, hybonet)"),
    "matrix_dropout": (..., "dropout rate of the relation's matrix (of tucker)"),
    "channels": (..., "filters of the convolution (of conve)"),
    "picture_dropout": (..., "dropout rate of the feature maps (of conve)"),
    "learn_curvature": (..., "whether c is learned: no, one for all relations, or one for each relation (of roth, refh, atth, roth-stretch, mixed-curvature)"),
    "spherical_dim": (..., "dimension of the part on the sphere; 0: a third of dim (of mixed-curvature)"),
    "flat_dim": (..., "dimension of the part in Euclidean space; 0: a third of dim (of mixed-curvature)"),
    "temperature": (..., "α: how much more weight negatives with high scores get; 0: all have the same weight (of self-adversarial)"),
    "margin": (..., "γ: how far a true triple is to be scored above a false one (of margin)"),
    "softness": (..., "τ: how far two scores have to be apart for their order to count fully (of rank)"),
    "label_loss": (..., "softmax over all entities (cross-entropy), or a binary loss for each entity (bernoulli) (of one-vs-all, k-vs-all)"),
    "label_smoothing": (..., "ε: share of the label that is spread evenly over all entities (of one-vs-all, k-vs-all)"),
    "answer_weight": (..., "κ: the weight of a question is 1 + κ times its answer's share of the most frequent answer's facts (of one-vs-all, k-vs-all)"),
    "negatives": (50, "false triples for each true one (of uniform, with-head, both-sides, shared, local, by-relation, checked, unrelated, relatives)"),
    "entity_parts": (..., "parts of the entities, each for a part of the batch; a multiple of the number of ranks (of local)"),
    "lr": (50.0, "learning rate; in the paper (SGD, objective bernoulli) 50 for WN18RR and NELL, 10 for FB15k-237; small, dense graphs and other objectives need less (of sgd, adagrad, row-adagrad, adam)"),
    "clip": (0.0, "largest norm of a row's gradient, in the metric of its space; longer gradients are clipped to it; 0: no clipping (of sgd, adagrad, row-adagrad, adam)"),
    "eps": (..., "added to the denominator, the root of the summed squares (of adagrad, row-adagrad, adam)"),
    "beta1": (..., "decay of the mean gradient (of adam)"),
    "beta2": (..., "decay of the mean squared gradient (of adam)"),
    "regularizer_weight": (..., "λ: how much the regularizer counts beside the loss (of l2, n3, dura, relation-prediction)"),
    "regularize_relations": (..., "whether the relations' parameters are included (of l2, n3)"),
    "dura_balance": (..., "ρ: norms of entities have weight ρ, norms of transformed entities 1/ρ (of dura)"),
    "recipe": (..., "settings that go together, by name (murp.recipes.RECIPES)"),
}
