"""Objectives: the losses that training minimises, one file each. :mod:`murp.registry` has their names."""

from murp.objectives.objective import AllEntities, Labels, Objective, Sampled

__all__ = ["AllEntities", "Labels", "Objective", "Sampled"]
