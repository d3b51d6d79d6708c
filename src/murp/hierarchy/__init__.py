"""Embeddings of one hierarchy: its transitive closure, training on it, a layout of its tree, and reconstruction."""

from murp.hierarchy.embedding import embed, lay_out, make, reconstruction, start
from murp.hierarchy.reconstruction import Reconstruction, reconstruct
from murp.hierarchy.taxonomy import Taxonomy
from murp.hierarchy.tree_layout import layout

__all__ = ["Reconstruction", "Taxonomy", "embed", "lay_out", "layout", "make", "reconstruct", "reconstruction", "start"]
