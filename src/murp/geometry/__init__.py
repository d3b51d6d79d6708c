"""Spaces to embed in: the Poincaré ball and Euclidean space."""

from __future__ import annotations

from murp.geometry.spaces import Euclidean, Geometry, PoincareBall

__all__ = ["Euclidean", "Geometry", "PoincareBall"]
