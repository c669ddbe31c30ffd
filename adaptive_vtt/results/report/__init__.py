"""The report: one HTML page that stands alone, rebuilt from the journal and nothing else."""

from typing import TYPE_CHECKING

from ...utils.importing import lazily

if TYPE_CHECKING:
    from .page import render, write_report

__getattr__, __dir__ = lazily(__name__)
__all__ = ["render", "write_report"]
