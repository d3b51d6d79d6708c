"""Run folders: what training writes and everything else reads."""

from murp.runs.run import Run, load

__all__ = ["Run", "load"]
