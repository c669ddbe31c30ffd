"""Labels by people: confirm or correct the violations an audit of captions reports."""

from .agreement import Scores, fleiss_kappa, majority, scores
from .items import NONE, Item, items, to_label
from .labels import Label, keep, read_folder, read_labels
from .summary import Summary, summarise

__all__ = [
    "NONE",
    "Item",
    "Label",
    "Scores",
    "Summary",
    "fleiss_kappa",
    "items",
    "keep",
    "majority",
    "read_folder",
    "read_labels",
    "scores",
    "summarise",
    "to_label",
]
