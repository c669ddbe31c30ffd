"""Predictions of an audit at its checkpoints: tables of them, and Plotly figures of the tables."""

from .figures import PLOTS, plotted
from .tables import TableName, beliefs

__all__ = ["PLOTS", "TableName", "beliefs", "plotted"]
