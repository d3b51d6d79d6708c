"""One model trained by many processes (ranks): rows of entities shared out, batches cut into slices.

ranks.py     the processes, and what they tell each other; torch.distributed started by torchrun
shares.py    which rows a rank holds, and their initial values
plan.py      which rows a slice of a batch reads, and who has them
engine.py    the step: rows fetched, gradients returned, rows moved by their owner
ranking.py   evaluation: every rank counts among its own candidates
saving.py    checkpoints: every rank writes and reads its own rows
"""

from murp.distributed.engine import ShardedEngine
from murp.distributed.ranks import Ranks, join, launched

__all__ = ["Ranks", "ShardedEngine", "join", "launched"]
