"""Vectors out of a run, with what is needed to use them rightly, and back in."""

from murp.exchange.export import export
from murp.exchange.importing import import_run
from murp.export_formats import FORMATS

__all__ = ["FORMATS", "export", "import_run"]
