"""Vectors out of a run, with what is needed to use them rightly, and back in."""

from murp.exchange.export import FORMATS, export
from murp.exchange.importing import import_run

__all__ = ["FORMATS", "export", "import_run"]
