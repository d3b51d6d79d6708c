"""One model trained by many processes (ranks): rows of entities are divided among them, batches are cut into slices.

ranks.py     the processes and their messages; torch.distributed, started by torchrun
shares.py    which rows a rank has, and their initial values
plan.py      which rows a slice of a batch needs, and which rank has them
engine.py    the step: fetch rows, return gradients, update rows on the rank that has them
own_rows.py  scores of the entities that a rank has
ranking.py   evaluation: every rank counts among its own candidates
searching.py answers: every rank keeps the best of its own entities
saving.py    checkpoints: every rank writes and reads its own rows
"""

from murp.distributed.engine import ShardedEngine
from murp.distributed.ranks import Ranks, join, launched

__all__ = ["Ranks", "ShardedEngine", "join", "launched"]
