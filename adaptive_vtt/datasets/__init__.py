"""Datasets: where the samples, their images and their truths come from."""

from ..types import UNKNOWN, Sample
from .base import Dataset
from .formats.class_folder import from_class_folders
from .formats.coco import from_coco
from .formats.endobench import from_endobench
from .formats.fashion_mnist import fashion
from .formats.idrid import from_idrid
from .formats.image_folder import from_images
from .formats.isic import from_isic
from .formats.mask_folder import from_masks
from .formats.medmnist import from_medmnist, medmnist_sets
from .formats.medvqa import from_medvqa
from .formats.table_file import read_table
from .formats.voc import from_voc
from .synthetic.phantom import phantom
from .synthetic.scenes import scenes
from .table import TableDataset, from_table

__all__ = [
    "UNKNOWN",
    "Dataset",
    "Sample",
    "TableDataset",
    "fashion",
    "from_class_folders",
    "from_coco",
    "from_endobench",
    "from_idrid",
    "from_images",
    "from_isic",
    "from_masks",
    "from_medmnist",
    "from_medvqa",
    "from_table",
    "from_voc",
    "medmnist_sets",
    "phantom",
    "read_table",
    "scenes",
]
