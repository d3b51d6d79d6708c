"""Objectives: what training minimises, a file each. :mod:`murp.registry` has their names."""

from murp.objectives.objective import AllEntities, Labels, Objective, Sampled

__all__ = ["AllEntities", "Labels", "Objective", "Sampled"]
