"""Datasets: where the samples, their images and their truths come from."""

from .base import UNKNOWN, Dataset, Sample
from .class_folder import from_class_folders
from .coco import from_coco
from .endobench import from_endobench
from .fashion_mnist import fashion
from .folder import read_table
from .idrid import from_idrid
from .image_folder import from_images
from .isic import from_isic
from .mask_folder import from_masks
from .medmnist import from_medmnist, medmnist_sets
from .medvqa import from_medvqa
from .phantom import phantom
from .scenes import scenes
from .table import TableDataset, from_table
from .voc import from_voc

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
