"""A graph whose shape is known."""

from murp.testing import tree

__all__ = ["tree"]
