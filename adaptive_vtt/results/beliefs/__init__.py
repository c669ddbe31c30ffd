"""What an audit believed as it went on: tables of it, and Plotly figures made of those alone."""

from .figures import PLOTS, plotted
from .tables import Beliefs, Told, beliefs

__all__ = ["PLOTS", "Beliefs", "Told", "beliefs", "plotted"]
