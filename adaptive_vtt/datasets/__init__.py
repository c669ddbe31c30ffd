"""Datasets: where the samples, their images and their truths come from."""

from .base import UNKNOWN, Dataset, Sample
from .fashion_mnist import fashion
from .folder import read_table
from .table import TableDataset, from_table

__all__ = [
    "UNKNOWN",
    "Dataset",
    "Sample",
    "TableDataset",
    "fashion",
    "from_table",
    "read_table",
]
