"""Spaces to embed in: the Poincaré ball, the hyperboloid, Euclidean space, the sphere, and products of them."""

from __future__ import annotations

from murp.geometry.euclidean import Euclidean
from murp.geometry.hyperboloid import Hyperboloid
from murp.geometry.poincare import PoincareBall
from murp.geometry.product import Product
from murp.geometry.spaces import Geometry, MobiusGeometry
from murp.geometry.sphere import Sphere

__all__ = ["Euclidean", "Geometry", "Hyperboloid", "MobiusGeometry", "PoincareBall", "Product", "Sphere"]
