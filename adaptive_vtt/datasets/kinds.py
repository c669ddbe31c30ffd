"""Kinds of datasets: their names in SPEC.toml, and the function that reads each."""

from ..utils.registry import Registry

_FORMATS = f"{__package__}.formats"

REGISTRY = Registry(
    "dataset",
    "datasets",
    ("name", "concepts", "sample"),
    {
        "table": f"{_FORMATS}.table_file:read_table",
        "fashion": f"{_FORMATS}.fashion_mnist:fashion",
        "medmnist": f"{_FORMATS}.medmnist:from_medmnist",
        "masks": f"{_FORMATS}.folders:from_masks",
        "classes": f"{_FORMATS}.folders:from_class_folders",
        "isic": f"{_FORMATS}.isic_idrid:from_isic",
        "idrid": f"{_FORMATS}.isic_idrid:from_idrid",
        "endobench": f"{_FORMATS}.endobench:from_endobench",
        "medvqa": f"{_FORMATS}.medvqa:from_medvqa",
        "coco": f"{_FORMATS}.coco:from_coco",
        "voc": f"{_FORMATS}.voc:from_voc",
        "yolo": f"{_FORMATS}.yolo:from_yolo",
        "hugging-face": f"{_FORMATS}.hugging_face:from_hugging_face",
        "images": f"{_FORMATS}.folders:from_images",
    },
)
"""Every kind of dataset that a SPEC.toml may name, with the function that reads it."""
