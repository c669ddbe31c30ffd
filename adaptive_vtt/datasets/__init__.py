"""Datasets: samples with images and truths, read from published formats, folders and tables."""

from typing import TYPE_CHECKING

from ..types import UNKNOWN, Sample
from ..utils.importing import lazily
from .kinds import REGISTRY

if TYPE_CHECKING:
    from .base import Dataset
    from .formats.coco import from_coco
    from .formats.endobench import from_endobench
    from .formats.fashion_mnist import fashion
    from .formats.folders import from_class_folders, from_images, from_masks
    from .formats.hugging_face import from_hugging_face
    from .formats.isic_idrid import from_idrid, from_isic
    from .formats.medmnist import from_medmnist, medmnist_sets
    from .formats.medvqa import from_medvqa
    from .formats.table_file import read_table
    from .formats.voc import from_voc
    from .formats.yolo import from_yolo
    from .recognition import as_dataset, recognised
    from .regions import grid_regions, object_regions
    from .table import TableDataset, from_table

__getattr__, __dir__ = lazily(__name__)

__all__ = [
    "REGISTRY", "UNKNOWN", "Dataset", "Sample", "TableDataset", "as_dataset", "fashion",
    "from_class_folders", "from_coco", "from_endobench", "from_hugging_face", "from_idrid",
    "from_images", "from_isic", "from_masks", "from_medmnist", "from_medvqa", "from_table",
    "from_voc", "from_yolo", "grid_regions", "medmnist_sets", "object_regions", "read_table",
    "recognised",
]  # fmt: skip
