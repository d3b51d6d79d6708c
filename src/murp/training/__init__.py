"""Training: sampling, the loop, checkpoints; the step itself is in :mod:`murp.engines`."""

from murp.training.grid import sweep
from murp.training.loop import Interrupted
from murp.training.start import resume, train

__all__ = ["Interrupted", "resume", "sweep", "train"]
